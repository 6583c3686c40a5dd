/** The OpenAPI document of a service, and a check of responses against it. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import type { Answer } from './rest.ts';
import type { RunningService } from './service.ts';

export interface ApiOperation {
  readonly operationId: string;
  readonly parameters: readonly ApiParameter[];
  readonly responses: Readonly<Record<string, ApiResponse>>;
}

export interface ApiParameter {
  readonly name: string;
  readonly in: string;
  readonly schema: Readonly<Record<string, unknown>>;
  readonly style?: string;
  readonly explode?: boolean;
}

interface ApiResponse {
  readonly content?: Readonly<Record<string, { readonly schema: Readonly<Record<string, unknown>> }>>;
}

export interface ApiDocument {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, { readonly get: ApiOperation }>>;
  readonly components: { readonly schemas: Readonly<Record<string, object>> };
}

/** The OpenAPI document of a running service, used to validate its responses. */
export class Contract {
  readonly document: ApiDocument;
  readonly #ajv: Ajv2020;
  readonly #byReference = new Map<string, ValidateFunction>();

  constructor(document: ApiDocument) {
    this.document = document;
    this.#ajv = new Ajv2020({ strict: true, allErrors: true, allowUnionTypes: true });
    this.#ajv.addVocabulary(['openapi', 'info', 'servers', 'paths', 'components', 'security']);
    formats.default(this.#ajv);
    this.#ajv.addSchema(document, 'api');
  }

  static async of(service: RunningService, headers: Readonly<Record<string, string>> = {}): Promise<Contract> {
    return new Contract((await (await service.get('/openapi.json', { headers })).json()) as ApiDocument);
  }

  operation(path: string): ApiOperation {
    const item = this.document.paths[path];
    if (!item) throw new Error(`the OpenAPI document has no path ${path}`);
    return item.get;
  }

  /** Differences between a response and the document; empty if the response conforms. */
  violations(path: string, answer: Answer): string[] {
    const response = this.operation(path).responses[String(answer.status)];
    if (!response) return [`status ${answer.status} is not documented`];
    const type = (answer.headers['content-type'] ?? '').split(';')[0] as string;
    if (!response.content) return answer.body === '' ? [] : ['a body is not documented'];
    const content = response.content[type];
    if (!content) return [`content type "${type}" is not documented for ${answer.status}`];
    if (!/json$/.test(type)) return [];
    return this.schemaViolations(content.schema, JSON.parse(answer.body));
  }

  schemaViolations(schema: Readonly<Record<string, unknown>>, value: unknown): string[] {
    const validate = this.#compiled(schema);
    return validate(value) ? [] : (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
  }

  /** Compiles each schema once, because compiling takes a hundred times longer than validating. */
  #compiled(schema: Readonly<Record<string, unknown>>): ValidateFunction {
    const reference = schema['$ref'];
    if (typeof reference !== 'string') return this.#ajv.compile(schema);
    const known = this.#byReference.get(reference) ?? this.#ajv.compile({ $ref: `api${reference}` });
    this.#byReference.set(reference, known);
    return known;
  }
}
