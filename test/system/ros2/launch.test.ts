import { execFile, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { readDefinitions } from '../../../scripts/ros/definitions.ts';
import { typeHash } from '../../../scripts/ros/type-hash.ts';
import { spoolFolder } from '../../../src/store/spool/spool.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { Network } from '../../../testkit/network/network.ts';
import { ROOT } from '../../../testkit/service/service.ts';
import { until } from '../../../testkit/wait.ts';
import { buildPackages, ros2Unavailable } from './support/ros2.ts';

// The ament packages, built and launched with the sourced ROS 2.

const skip = ros2Unavailable();
const ROLES = ['edge_brain', 'sensor_node', 'actuator_node'];

t.test('the packages work with the sourced ROS 2', { skip, timeout: 300_000 }, async (t) => {
  const folder = temporaryFolder(t);
  const env = { ...buildPackages(folder), EDGE_HEALTH_HOME: '' };
  const prefix = join(folder, 'install');
  const run = (program: string, ...args: string[]): string => {
    const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8', env, cwd: folder });
    if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${status}\n${stdout}\n${stderr}`);
    return stdout;
  };

  await t.test('both packages are found by the tools of ROS 2', async (t) => {
    t.same(run('ros2', 'pkg', 'executables', 'edge_health').trim().split('\n'), [
      'edge_health edge-health',
      'edge_health edge_health_node',
    ]);
    t.match(
      run('ros2', 'interface', 'show', 'edge_health_interfaces/msg/HealthStatus'),
      /^float64 cpu_percent .*\n(?:.*\n)*string timestamp /m,
    );
    t.match(run('ros2', 'run', 'edge_health', 'edge-health', 'version'), /^edge-health \d/);
  });

  await t.test('its generator gives the interfaces the hashes that edge-health announces', async (t) => {
    const { structs } = readDefinitions();
    const descriptions = globSync(`${prefix}/share/edge_health_interfaces/{msg,srv}/*.json`);
    if (process.env['ROS_DISTRO'] === 'humble') return t.equal(descriptions.length, 0, 'Humble has no type hashes');
    t.equal(descriptions.length, globSync(join(ROOT, 'ros2/edge_health_interfaces/{msg,srv}/*.*')).length);
    for (const file of descriptions) {
      const { type_hashes } = JSON.parse(readFileSync(file, 'utf8')) as { type_hashes: { type_name: string; hash_string: string }[] };
      for (const { type_name, hash_string } of type_hashes) t.equal(typeHash(type_name, structs), hash_string, type_name);
    }
    return undefined;
  });

  await t.test('ros2 launch --show-args explains the arguments', async (t) => {
    const shown = run('ros2', 'launch', 'edge_health', 'multi_node_monitoring.launch.py', '--show-args');
    for (const role of ROLES)
      t.match(shown, `'${role}_config':\n        Configuration file of ${role}.\n        (default: '${prefix}/share/`);
    for (const name of ['nodes', 'namespaces', 'aggregator', 'data_folder']) t.match(shown, `'${name}':`);
  });

  /** Launches in a network of its own until the output matches all of `patterns`, then sends Ctrl-C; returns the whole output. */
  const launch = async (t: Test, patterns: readonly RegExp[], ...args: string[]): Promise<string> => {
    const network = new Network();
    t.teardown(() => network.dispose());
    const data = temporaryFolder(t);
    const child = network
      .host()
      .spawn('ros2', ['launch', 'edge_health', 'multi_node_monitoring.launch.py', `data_folder:=${data}`, ...args], {
        env,
        cwd: folder,
        stdio: ['ignore', 'pipe', 'pipe'],
      });
    let output = '';
    let interrupted = false;
    const interrupt = (): void => {
      // Once: each further Ctrl-C makes launch print another line.
      if (!interrupted) child.kill('SIGINT');
      interrupted = true;
    };
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        output += text;
        if (patterns.every((pattern) => pattern.test(output))) interrupt();
      });
    }
    const tooLong = setTimeout(interrupt, 60_000);
    await once(child, 'close');
    clearTimeout(tooLong);
    for (const pattern of patterns) t.match(output, pattern);
    // Samples in memory survive a killed process.
    for (const store of globSync(`${data}/data/*`)) rmSync(spoolFolder(store, {}), { recursive: true, force: true });
    return output;
  };

  await t.test('each role runs in a process with its configuration, and Ctrl-C ends them', async (t) => {
    const output = await launch(
      t,
      ROLES.map((role) => new RegExp(`\\[${role}-\\d\\] notice: edge-health .* is running; .*/config/${role}_config\\.yaml`)),
    );
    for (const role of ROLES) t.match(output, new RegExp(`\\[${role}-\\d\\]: process has finished cleanly`));
  });

  await t.test('a subset runs in namespaces with another file; a role that cannot run is not restarted', async (t) => {
    const broken = join(folder, 'broken.yaml');
    writeFileSync(broken, 'node_name: 7up\n');
    const output = await launch(
      t,
      [/\[actuator_node-\d\] notice: edge-health .* is running/, /sensor_node is not restarted; its log shows what to change/],
      ...['nodes:=sensor_node,actuator_node', 'namespaces:=true', 'sensor_node_config:=broken.yaml'],
    );
    t.match(output, `${broken}:1:12: node_name: found "7up"`);
    t.match(output, '-r __ns:=/sensor_node', 'as the command that died is shown');
    t.notMatch(output, /edge_brain/);
  });

  const noAggregator = spawnSync('ros2', ['pkg', 'prefix', 'diagnostic_aggregator']).status !== 0 && 'needs diagnostic_aggregator';
  await t.test('the aggregator groups the entries of a healthy machine as OK', { skip: noAggregator }, async (t) => {
    const network = new Network();
    t.teardown(() => network.dispose());
    const host = network.host();
    const data = temporaryFolder(t);
    // Healthy under any load of this machine.
    const config = join(folder, 'healthy.yaml');
    writeFileSync(config, 'node_name: edge_brain\nthresholds: {cpu: off, memory: off, disk: off, temperature: off}\n');
    const options = ['nodes:=edge_brain', `edge_brain_config:=${config}`, 'aggregator:=true', `data_folder:=${data}`];
    const child = host.spawn('ros2', ['launch', 'edge_health', 'multi_node_monitoring.launch.py', ...options], { env, cwd: folder });
    child.stdout?.resume();
    child.stderr?.resume();
    const grouped = /name: '\/Edge computers\/CPU usage\/edge_brain: CPU usage'/;
    const attempt = async (): Promise<string | null> => {
      const [program, argv] = host.command('ros2', ['topic', 'echo', '--once', '--no-daemon', '/diagnostics_agg']);
      const shown = await new Promise<string>((resolve) =>
        execFile(program, argv, { env, timeout: 30_000 }, (_, stdout) => resolve(stdout)),
      );
      return grouped.test(shown) ? shown : null;
    };
    const shown = await until('the aggregator has received the entries', attempt);
    const levels = new Map([...shown.matchAll(/^- level: (.*)\n {2}name: (.*)$/gm)].map(([, level = '', name = '']) => [name, level]));
    for (const group of ['', '/Health', '/CPU usage', '/Memory usage', '/Disk usage', '/Temperature'])
      t.equal(levels.get(`/Edge computers${group}`), String.raw`"\0"`, `${group}: ${shown}`);
    child.kill('SIGINT');
    await once(child, 'close');
    for (const store of globSync(`${data}/data/*`)) rmSync(spoolFolder(store, {}), { recursive: true, force: true });
  });
});
