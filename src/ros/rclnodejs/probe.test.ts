import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { graphNames, isProbeTopic } from '../names.ts';
import type { Prepared } from './prepared.ts';
import { type ProbeOptions, type ProbeRequest, probe } from './probe.ts';
import { write } from './testing/trees.ts';

const prepared: Prepared = { key: 'jazzy-2.2.0-1a2b3c4d', distro: 'jazzy', folder: '/data/ros/jazzy-2.2.0-1a2b3c4d' };

/** Probes with a program that consists of these lines. */
function probeWith(t: Test, source: string, changes: Partial<ProbeOptions> = {}): Promise<string | null> {
  const root = temporaryFolder(t);
  write(root, { 'program.cjs': source });
  return probe(prepared, {
    program: pathToFileURL(join(root, 'program.cjs')),
    environment: process.env,
    discovery: { domainId: 5, discoveryRange: 'SUBNET', staticPeers: [] },
    names: graphNames({ node_name: 'health_monitor', namespace: null }, []),
    enclave: null,
    timeoutSeconds: 120,
    ...changes,
  });
}

const says = (expression: string): string => `process.stdout.write(JSON.stringify({ ok: false, error: ${expression} }) + '\\n')`;

t.test('a working middleware is reported as such', async (t) => {
  t.equal(await probeWith(t, `process.stdout.write('some library says hello\\n{"ok":true}\\n')`), null);
});

t.test('a problem is one line of bounded length', async (t) => {
  t.equal(await probeWith(t, `${says("'librcl_action.so: cannot\\n open'")}; process.exitCode = 1`), 'librcl_action.so: cannot open');
  const long = await probeWith(t, says("'x'.repeat(100000)"));
  t.ok((long?.length ?? 0) < 400);
});

t.test('the reason of the middleware is taken from standard error', async (t) => {
  const problem = await probeWith(
    t,
    `process.stderr.write('nope0: no such interface\\n'); ${says("'error not set, at /ros/rcl/node.c:252'")}`,
  );
  t.equal(problem, 'error not set: nope0: no such interface');
});

t.test('the reason that Cyclone DDS gives is not hidden by what ROS 2 logs after it', async (t) => {
  // As rmw_cyclonedds of Jazzy writes it where CYCLONEDDS_URI names an interface that is not there.
  const logged = '[ERROR] [1795406488.126322762] [rmw_cyclonedds_cpp]: rmw_create_node: failed to create domain, error Error\n';
  const failsAfter = (lines: string): Promise<string | null> =>
    probeWith(t, `process.stderr.write(${JSON.stringify(lines)}); ${says("'error not set'")}`);
  t.equal(
    await failsAfter(`1795406488.126125 [0]       node: eth9: does not match an available interface.\n${logged}`),
    'error not set: eth9: does not match an available interface.',
  );
  t.match(await failsAfter(logged), /^error not set: .*failed to create domain/, 'alone it is better than nothing');
});

t.test('a crash ends only the probe', async (t) => {
  t.equal(await probeWith(t, "process.kill(process.pid, 'SIGSEGV')"), 'it crashed (SIGSEGV)');
  t.match(await probeWith(t, "process.stderr.write('bad RMW\\n'); process.abort()"), /^it crashed \(SIGABRT\)/);
});

t.test('a hang ends at the timeout', async (t) => {
  t.equal(await probeWith(t, 'setInterval(() => {}, 1000)', { timeoutSeconds: 0.2 }), 'no response within 0.2 s');
});

t.test('a program that ends without a result is reported', async (t) => {
  t.equal(
    await probeWith(t, "process.stderr.write('cannot find module x\\n'); process.exitCode = 3"),
    'it ended with exit code 3: cannot find module x',
  );
  t.match(await probeWith(t, "process.stdout.write('{\\n')"), /it ended with exit code 0/);
  t.match(await probeWith(t, 'throw new Error("boom")'), /it ended with exit code 1/);
});

t.test('a middleware variable that causes the failure is reported', async (t) => {
  const failing = (name: string): string =>
    `if (process.env.${name}) ${says("'failed to create domain'")}; else process.stdout.write('{"ok":true}\\n')`;
  const environment = { ...process.env, CYCLONEDDS_URI: 'file:///etc/dds.xml', RMW_IMPLEMENTATION: 'rmw_cyclonedds_cpp' };
  for (const name of ['CYCLONEDDS_URI', 'RMW_IMPLEMENTATION'] as const) {
    t.equal(
      await probeWith(t, failing(name), { environment }),
      `${name}=${environment[name]}: failed to create domain; correct ${name}, or unset it`,
    );
  }
  t.equal(await probeWith(t, says("'no memory'"), { environment }), 'no memory', 'another fault is not blamed on it');
  const long = await probeWith(t, failing('CYCLONEDDS_URI'), { environment: { ...environment, CYCLONEDDS_URI: 'x'.repeat(10_000) } });
  t.ok((long?.length ?? 0) < 600, 'of bounded length');
});

t.test('it can load the prepared copy, and uses a separate domain', async (t) => {
  const environment = { ...process.env, LD_LIBRARY_PATH: '/opt/ros/jazzy/lib', ROS_LOCALHOST_ONLY: '1', ROS_DOMAIN_ID: '1' };
  const arrived = await probeWith(
    t,
    says("['LD_LIBRARY_PATH', 'ROS_LOCALHOST_ONLY', 'ROS_AUTOMATIC_DISCOVERY_RANGE'].map((name) => process.env[name]).join(' ')"),
    { environment },
  );
  t.equal(arrived, '/data/ros/jazzy-2.2.0-1a2b3c4d/interfaces/lib:/opt/ros/jazzy/lib OFF');
  const domain = says('process.env.ROS_DOMAIN_ID');
  const environments = { ...process.env, ROS_DISCOVERY_SERVER: '10.0.0.1:11811' };
  for (const domainId of [0, 5, 100, 101, 232]) {
    const discovery = { domainId, discoveryRange: 'SUBNET' as const, staticPeers: ['10.0.0.7'] };
    t.notMatch(await probeWith(t, domain, { environment: environments, discovery }), new RegExp(`^${domainId}$`), 'a domain of its own');
  }
  t.equal(
    await probeWith(t, says("String(process.env.ROS_DISCOVERY_SERVER) + ' ' + process.env.ROS_STATIC_PEERS"), {
      environment: environments,
      discovery: { domainId: 0, discoveryRange: 'SUBNET', staticPeers: ['10.0.0.7'] },
    }),
    'undefined undefined',
    'no server and no peer that would pass it on',
  );
});

t.test('its topics are hidden; under SROS2 it uses the real ones, and publishes nothing', async (t) => {
  const asked = async (environment: NodeJS.ProcessEnv): Promise<ProbeRequest> => {
    const root = temporaryFolder(t);
    const file = join(root, 'asked.json');
    write(root, { 'program.cjs': `require('node:fs').writeFileSync(${JSON.stringify(file)}, process.argv[2])` });
    await probe(prepared, {
      program: pathToFileURL(join(root, 'program.cjs')),
      environment,
      discovery: { domainId: 5, discoveryRange: 'SUBNET', staticPeers: [] },
      names: graphNames({ node_name: 'health_monitor', namespace: null }, []),
      enclave: '/edge_health',
      timeoutSeconds: 120,
    });
    return JSON.parse(readFileSync(file, 'utf8')) as ProbeRequest;
  };
  const open = await asked(process.env);
  t.equal(open.publish, true);
  t.ok([...Object.values(open.names.topics), ...Object.values(open.names.services)].every((name) => name.startsWith('/_')));
  t.ok(Object.values(open.names.nodes).every((name) => name.startsWith('_')));
  t.ok([...Object.values(open.names.topics)].every(isProbeTopic), 'an appliance leaves them aside');
  t.not(open.discovery.domainId, 5);
  t.match(open.discovery, { discoveryRange: 'OFF', staticPeers: [] });
  const secured = await asked({ ...process.env, ROS_SECURITY_ENABLE: 'true' });
  t.match(secured, { publish: false, enclave: '/edge_health', names: { topics: { healthStatus: '/health_status' } } });
  t.match(secured.discovery, { domainId: 5, discoveryRange: 'OFF' }, 'the domain that its enclave is allowed in');
});
