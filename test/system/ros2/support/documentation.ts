import { once } from 'node:events';
import { copyFileSync, existsSync, globSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import type { StatusDocument } from '../../../../src/http/api/schema.ts';
import { spoolFolder } from '../../../../src/store/spool/spool.ts';
import { type Host, Network } from '../../../../testkit/network/network.ts';
import type { HostService } from '../../../../testkit/network/service-on-host.ts';
import { rclpyPrograms, rosCommands } from '../../../../testkit/ros-commands.ts';
import { ROOT } from '../../../../testkit/service/service.ts';
import { until } from '../../../../testkit/wait.ts';
import type { Ros } from './ros2.ts';

interface Expected {
  readonly shows: RegExp;
  /** It is interrupted when it has shown this; the others have to end by themselves, with status 0. */
  readonly endless?: boolean;
  /** It needs no service: it starts monitors of its own, or only reads files. */
  readonly alone?: boolean;
}

const RUNNING = 'notice: edge-health .* is running';

/** What a documented command shows. A command that is not known here fails the test, so that every new one is run. */
function expectedOf(line: string): Expected {
  const [, group = '', verb = ''] = /\bros2 (\S+) (\S+)/.exec(line) ?? [];
  if (line.endsWith(' --help')) return { shows: /usage: ros2/, alone: true };
  switch (`${group} ${verb}`) {
    case 'node list':
      return { shows: /^\/alert_publisher\n\/health_monitor\n\/safe_shutdown\n\/threshold_monitor$/m };
    case 'param list':
      return { shows: /^ {2}thresholds\.memory\.warning$/m };
    case 'param get':
      return { shows: /^(?:Double|Integer|String) value is: / };
    case 'topic info':
      return { shows: /^ *Durability: TRANSIENT_LOCAL$/m };
    case 'pkg prefix':
      return { shows: /^\/\S+$/m, alone: true };
    case 'service list':
      return { shows: /^\/health_monitor\/safe_shutdown$/m };
    case 'service call':
      return { shows: /success=True/ };
    case 'topic echo':
      // Of a shutdown of before, all steps.
      if (line.includes('/shutdown_status'))
        return { shows: line.includes('--qos-') ? /announce[\s\S]*completed/ : /completed/, endless: true };
      return { shows: /^---$/m, endless: true };
    case 'interface show':
      return { shows: /^float64 cpu_percent/m, alone: true };
    case 'launch edge_health': {
      if (line.includes('--show-args')) return { shows: /^Arguments/, alone: true };
      const roles = /nodes:=(\S+)/.exec(line)?.[1]?.split(',').length ?? 3;
      return { shows: new RegExp(`(?:${RUNNING}[\\s\\S]*){${roles}}`), endless: true, alone: true };
    }
    case 'run edge_health':
      if (line.includes('edge_health_node')) return { shows: new RegExp(RUNNING), endless: true, alone: true };
      // Its status is the worst of the nodes.
      return { shows: /health_monitor/, endless: true };
    case 'security create_keystore':
    case 'security create_enclave':
    case 'security create_permission':
      return { shows: /^/, alone: true };
    default:
      throw new Error(`a new command: add to ${import.meta.filename} what it shows: ${line}`);
  }
}

/** All but those that need diagnostic_aggregator, which launch.test.ts runs where it is installed. */
const COMMANDS = rosCommands().filter(({ line }) => !/aggregator:=true|\/diagnostics_agg/.test(line));

/** A home folder as the documentation assumes it, in which the commands run. */
function prepareHome({ folder }: Ros): void {
  if (existsSync(join(folder, 'docs'))) return;
  symlinkSync(join(ROOT, 'docs'), join(folder, 'docs'));
  copyFileSync(join(ROOT, 'config/sensor_node_config.yaml'), join(folder, 'my_sensor_node.yaml'));
}

/** Runs a line in a shell until it ends or has shown what is expected; returns its output. */
async function output(host: Host, ros: Ros, middleware: string, line: string, { shows, endless = false }: Expected): Promise<string> {
  const env = { ...ros.environment, RMW_IMPLEMENTATION: middleware, PYTHONUNBUFFERED: '1', HOME: ros.folder, EDGE_HEALTH_HOME: '' };
  // What the user fills in; rqt is not part of ros-core, so its argument is looked up instead.
  const filled = line.replace(/\bFILE\b/, join(ros.folder, 'my_sensor_node.yaml')).replace('rqt --perspective-file', 'ls');
  const child = host.spawn('bash', ['-c', `enclave=viewer; set -o pipefail; ${filled}`], {
    env,
    cwd: ros.folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    // The shell and what it starts are one process group.
    detached: true,
  });
  const signal = (name: NodeJS.Signals): boolean => child.exitCode === null && process.kill(-(child.pid as number), name);
  let text = '';
  let isInterrupted = false;
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (part: string) => {
      text += part;
      if (!endless || isInterrupted || !shows.test(text)) return;
      isInterrupted = true;
      signal('SIGINT');
    });
  }
  const limit = setTimeout(() => signal('SIGKILL'), 60_000);
  const [code] = await once(child, 'close');
  clearTimeout(limit);
  if (endless ? !isInterrupted : code !== 0) throw new Error(`${line}: ended with ${code}\n${text}`);
  return text;
}

/** Runs the documented commands that need no service. */
export async function documentedAlone(t: Test, ros: Ros, middleware: string): Promise<void> {
  prepareHome(ros);
  for (const { page, line } of COMMANDS.filter(({ line }) => expectedOf(line).alone)) {
    await t.test(`${page}: ${line}`, async (t) => {
      const network = new Network();
      t.teardown(() => network.dispose());
      t.match(await output(network.host(), ros, middleware, line, expectedOf(line)), expectedOf(line).shows);
      // Samples in memory survive a killed process.
      for (const store of globSync(join(ros.folder, '{,.ros/edge_health/}data/*')))
        rmSync(spoolFolder(store, {}), { recursive: true, force: true });
    });
  }
}

/** Runs the documented commands and programs that need the service, which has an open alert. */
export async function documentedWith(t: Test, service: HostService, host: Host, ros: Ros, middleware: string): Promise<void> {
  prepareHome(ros);
  const lines = COMMANDS.filter(({ line }) => expectedOf(line).alone !== true);
  const programs = rclpyPrograms().map(({ page, line }, i) => {
    const file = join(ros.folder, `program${i}.py`);
    writeFileSync(file, line);
    return { page, line: `python3 ${file}`, expected: { shows: /\S\n/, endless: line.includes('rclpy.spin(') } };
  });
  const all = [...lines.map((command) => ({ ...command, expected: expectedOf(command.line) })), ...programs];
  // Calls come first: other commands show the past of a shutdown.
  for (const { page, line, expected } of all.sort(
    (a, b) => Number(b.line.includes('service call')) - Number(a.line.includes('service call')),
  )) {
    await t.test(`${page}: ${line}`, async (t) => {
      // The daemon of the ROS tools may not yet have discovered everything.
      let shown = '';
      await until(
        line,
        async () => {
          shown = await output(host, ros, middleware, line, expected).catch((error: Error) => error.message);
          return expected.shows.test(shown);
        },
        { describe: () => shown },
      );
      t.pass();
      await service.untilGet<StatusDocument>('/status', ({ shutdown }) => shutdown.state !== 'in_progress');
    });
  }
}
