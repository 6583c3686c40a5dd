/** The documents of the REST API and of the scheduler's state file, for programs other than the service. */
export { type OpsDocument, opsDocumentSchema, runSchema } from '../http/api/ops-schema.ts';
export type { AggregateDocument, StatusDocument } from '../http/api/schema.ts';
