import { userInfo } from 'node:os';
import { type RestClient, ServiceRefused, serviceOf } from '../client/rest.ts';
import { localService, notRunningHint } from '../client/running-service.ts';
import { configPath, isUnreadable, loadConfig } from '../config/load.ts';
import { DEFAULT_CONFIG } from '../config/schema.ts';
import { markLookAlike } from '../core/look-alike.ts';
import { exchange } from '../core/platform/local-socket.ts';
import { alignedRows, printJson, printLines, printProblem } from '../core/platform/output.ts';
import { printable } from '../core/text.ts';
import { type StatusDocument, statusDocumentSchema } from '../http/api/schema.ts';
import type { ControlAnswer, ControlRequest } from '../system/control-socket.ts';
import { UsageError } from './arguments.ts';
import { type Command, EXIT } from './command.ts';

const MAX_ANSWER = 65_536;
const TIMEOUT_SECONDS = 10;
const SEE = 'see: edge-health nodes --help';

export const nodes: Command = {
  summary: 'List the nodes of the running service, or remove remote ones',
  usage: 'nodes [forget NAME | forget --stale] [--url URL] [--config FILE] [--json]',
  help: `  forget NAME     resolve the open alerts of a remote node and remove it from the list; a node that publishes again
                  is listed again. Allowed for root and members of the group edge-health, in a checkout for the
                  user who runs the service; only on the machine of the service
  forget --stale  the same for every stale remote node
  --url URL       address of the service, which receives the token; default: the service of this machine that runs
                  with the configuration, over its Unix socket
  --config FILE   configuration of the service, with its port and token
  --json          print the nodes as in /status, or the response to forget, as JSON

Exit codes: 0 done, 1 not forgotten, 64 wrong usage, 69 service not reachable, 77 no permission.`,
  options: { stale: { type: 'boolean' }, url: { type: 'string' }, config: { type: 'string' }, json: { type: 'boolean' } },
  positionals: 2,
  run: async ({ options, positionals: [action, name] }) => {
    if (action !== undefined && action !== 'forget') throw new UsageError(`there is no "nodes ${action}"; ${SEE}`);
    const isStale = options['stale'] === true;
    if (action === 'forget' && name === undefined && !isStale) throw new UsageError(`the name of the node is missing; ${SEE}`);
    if (isStale && (action !== 'forget' || name !== undefined))
      throw new UsageError(`--stale can only be used with forget and without a name; ${SEE}`);
    const url = (options['url'] as string | undefined) ?? null;
    if (action === 'forget' && url !== null && !isThisMachine(url))
      throw new UsageError(`nodes are forgotten on the machine of the service: log in to ${url} and run it there`);
    const file = configPath((options['config'] as string | undefined) ?? null);
    const loaded = loadConfig(file);
    let service: RestClient | null = null;
    let document: StatusDocument;
    try {
      service = serviceOf((loaded.ok ? loaded.config : DEFAULT_CONFIG).rest, url ?? localService(file, process.env));
      document = await service.json<StatusDocument>('/status', { schema: statusDocumentSchema });
    } catch (error) {
      const { cause, message } = error as Error & { cause?: { code?: string } };
      if (error instanceof ServiceRefused && error.code === 'unauthorized' && isUnreadable(loaded))
        return fail(EXIT.noPermission, `a token is required, and ${file} cannot be read by this user; run: sudo edge-health nodes`);
      const remedy = url === null ? notRunningHint() : '';
      const problem = cause ? `no response from the service at ${service?.base ?? url}: ${cause.code ?? message}` : message;
      return fail(EXIT.unavailable, `${problem}${remedy}`);
    }
    const asJson = options['json'] === true;
    if (action === 'forget') return forget(name ?? null, document.control_socket, asJson);
    if (asJson) printJson(document.nodes, 2);
    else printLines(table(document.nodes));
    return EXIT.ok;
  },
};

/** Requests the removal of a remote node. `name` null: every stale node. */
async function forget(name: string | null, socket: string | null, asJson: boolean): Promise<number> {
  if (socket === null) return fail(EXIT.unavailable, 'the service has no control socket; see its log for the reason');
  const user = process.env['SUDO_USER'] ?? userInfo().username;
  try {
    const answer = await requestControlSocket(socket, { forget: name, requested_by: user });
    if (asJson) printJson(answer);
    else if (answer.ok) printLines([answer.message]);
    if (answer.ok) return EXIT.ok;
    return asJson ? EXIT.failure : fail(EXIT.failure, answer.message);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'EACCES' || code === 'EPERM')
      return fail(EXIT.noPermission, `the user ${user} may not use ${socket}: run this with sudo, or as a member of the group edge-health`);
    return fail(EXIT.unavailable, `${socket} cannot be reached: ${code ?? message}`);
  }
}

function fail(code: number, message: string): number {
  printProblem(`edge-health nodes: ${message}`);
  return code;
}

function isThisMachine(url: string): boolean {
  const host = URL.parse(url)?.hostname ?? '';
  return host === 'localhost' || host === '[::1]' || /^127(?:\.\d+){3}$/.test(host);
}

function table(found: StatusDocument['nodes']): string[] {
  return alignedRows([
    ['NODE', '', 'STATUS', 'LAST SEEN', 'OPEN ALERTS', ''],
    ...found.map((node) => [
      printable(markLookAlike(node.node_name)),
      node.local ? 'local' : 'remote',
      node.status,
      node.last_seen ?? '-',
      String(node.open_alerts),
      [
        ...(node.left === null ? [] : [`left at ${node.left}`]),
        ...(node.conflict_addresses.length === 0 ? [] : [`published by several machines: ${node.conflict_addresses.join(', ')}`]),
        ...(node.clock_ahead_seconds === null ? [] : [`its clock is ${node.clock_ahead_seconds} s ahead`]),
      ].join(', '),
    ]),
  ]);
}

/** Sends a request over the control socket of the running service. Rejects with the system's error code if it cannot be reached. */
async function requestControlSocket(path: string, request: ControlRequest): Promise<ControlAnswer> {
  const limits = { maxCharacters: MAX_ANSWER, timeoutMs: TIMEOUT_SECONDS * 1000 };
  const text = await exchange(path, `${JSON.stringify(request)}\n`, limits);
  if (text === '') throw new Error('the service closed the connection without a response');
  return JSON.parse(text) as ControlAnswer;
}
