import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../testkit/effort.ts';
import {
  type Container,
  describeContainers,
  type EngineAnswer,
  engineRemedy,
  evaluateContainer,
  evaluateContainers,
  parseInspect,
} from './containers.ts';
import { recorded } from './testing/recorded.ts';

const docker = (name: string): Container => parseInspect('docker', recorded(`docker-${name}.json`))[0] as Container;
const podman = (name: string): Container => parseInspect('podman', recorded(`podman-${name}.json`))[0] as Container;
const none = (): number => 0;

t.test('parses the output of both engines', async (t) => {
  t.match(docker('running'), {
    engine: 'docker',
    name: 'navigation',
    state: 'running',
    health: 'healthy',
    restarts: 2,
    outOfMemory: false,
  });
  t.match(docker('out-of-memory'), { name: 'mapping', state: 'exited', health: null, exitCode: 137, outOfMemory: true });
  t.match(docker('restarting'), { state: 'restarting', restarts: 17 });
  t.match(podman('ok'), { engine: 'podman', name: 'ok', state: 'running', health: null, restarts: 0 });
  t.match(podman('sick'), { state: 'running', health: 'unhealthy', failingStreak: 1 });
  t.match(podman('crashing'), { state: 'exited', exitCode: 3, restarts: 3 });
  t.match(podman('killed'), { state: 'exited', exitCode: 137, outOfMemory: false });
  const older = JSON.stringify([{ Id: 'x', Name: 'old', State: { Status: 'running', Healthcheck: { Status: 'healthy' } } }]);
  t.match(parseInspect('podman', older), [{ name: 'old', health: 'healthy', restarts: 0 }], 'podman 3 calls it Healthcheck');
  t.throws(() => parseInspect('docker', 'Emulate Docker CLI'));
  t.throws(() => parseInspect('docker', '[{"Id":"x"}]'));
});

t.test('judges the state of a container', async (t) => {
  t.match(evaluateContainer(docker('running'), 0), { status: 'OK', message: 'runs in docker, healthy, restarts so far: 2' });
  t.match(evaluateContainer(docker('running'), 2), {
    status: 'WARNING',
    message: 'restarted 2 times since the last check',
    remedy: 'docker logs --tail 50 navigation',
  });
  t.match(evaluateContainer(docker('out-of-memory'), 0), {
    status: 'CRITICAL',
    message: /exited, killed: out of memory/,
    remedy: /raise its memory limit/,
  });
  t.match(evaluateContainer(docker('restarting'), 3), {
    status: 'CRITICAL',
    message: 'it is in a restart loop (17 restarts, exit code 1)',
  });
  t.match(evaluateContainer(podman('sick'), 0), {
    status: 'CRITICAL',
    message: /unhealthy: its health check failed 1 times/,
    remedy: /^podman logs/,
  });
  t.match(evaluateContainer(podman('crashing'), 3), { status: 'CRITICAL', message: 'not running: exited, exit code 3' });
  t.match(evaluateContainer(podman('killed'), 0), { status: 'CRITICAL', message: 'not running: exited, exit code 137 (SIGKILL)' });
  t.match(evaluateContainer({ ...podman('ok'), health: 'starting' }, 0), { status: 'OK', message: /starting/ });
  t.match(evaluateContainer({ ...podman('ok'), state: 'paused' }, 0), { status: 'CRITICAL', remedy: 'podman unpause ok' });
  t.match(evaluateContainer({ ...podman('ok'), state: 'created' }, 0), { status: 'CRITICAL', remedy: 'podman start ok' });
});

t.test('only a running container can be OK', async () => {
  const states = ['created', 'running', 'paused', 'restarting', 'exited', 'dead', 'removing', 'stopping', 'unknown', 'something-new'];
  fc.assert(
    fc.property(
      fc.constantFrom(...states),
      fc.constantFrom(null, 'healthy', 'starting', 'unhealthy'),
      fc.nat(5),
      (state, health, restarted) => {
        const { status } = evaluateContainer({ ...podman('ok'), state, health }, restarted);
        return (status === 'OK') === (state === 'running' && health !== 'unhealthy' && restarted === 0);
      },
    ),
    { numRuns: runs(100, 2000), seed: SEED },
  );
});

t.test('finds the engine of a container', async (t) => {
  const known = (engine: 'docker' | 'podman', ...containers: Container[]): EngineAnswer => ({
    engine,
    kind: 'containers',
    containers,
    complete: true,
  });
  const missing: EngineAnswer = { engine: 'docker', kind: 'missing' };
  const denied: EngineAnswer = {
    engine: 'docker',
    kind: 'failed',
    why: 'permission denied while trying to connect to the Docker daemon socket',
  };
  const down: EngineAnswer = {
    engine: 'docker',
    kind: 'failed',
    why: 'Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?',
  };
  const one = (...answers: EngineAnswer[]) => evaluateContainers(['ok'], answers, none)[0];
  t.match(one(missing, known('podman', podman('ok'))), { name: 'container ok', status: 'OK' });
  t.match(one(denied, known('podman', podman('ok'))), { status: 'OK' }, 'the other need not answer');
  t.match(one(missing, known('podman')), { status: 'CRITICAL', message: 'no such container in podman' });
  t.match(one(denied, known('podman')), { status: 'UNKNOWN', remedy: /SupplementaryGroups=docker/ });
  t.match(one(down, known('podman')), { status: 'CRITICAL', remedy: /systemctl start docker/ });
  t.match(one(missing, { engine: 'podman', kind: 'missing' }), { status: 'UNKNOWN', message: /neither docker nor podman/ });
  const stopped = { ...podman('ok'), engine: 'docker', state: 'exited' } as const;
  t.match(one(known('docker', stopped), known('podman', podman('ok'))), { status: 'OK' }, 'of two of one name the one that runs');
  t.match(
    one(missing, { engine: 'podman', kind: 'containers', containers: [], complete: false }),
    { status: 'UNKNOWN', message: 'no such container of this user in podman', remedy: /CONTAINER_HOST/ },
    "it may be another user's",
  );
  t.match(one(down, denied), { status: 'UNKNOWN' });
  t.match(engineRemedy('podman', 'permission denied'), /CONTAINER_HOST/);
  t.match(engineRemedy('podman', 'cannot re-exec process'), /podman ps/);
});

t.test('containers that are not configured are shown as OK', async (t) => {
  const shown = describeContainers([
    { engine: 'docker', kind: 'failed', why: 'permission denied while trying to connect' },
    { engine: 'podman', kind: 'containers', containers: [podman('ok'), podman('sick'), podman('crashing')], complete: true },
  ]);
  t.ok(
    shown.every(({ isNote, status }) => status === 'OK' && isNote),
    'nothing is expected of them',
  );
  t.match(shown, [
    {
      name: 'containers of docker',
      message: 'not listed (permission denied while trying to connect)',
      remedy: /SupplementaryGroups=docker/,
    },
    { name: 'container ok', message: 'running in podman', remedy: null, measured: { engine: 'podman', state: 'running' } },
    { message: 'running in podman, unhealthy' },
    { message: 'exited in podman, exit code 3' },
  ]);
  t.same(describeContainers([{ engine: 'docker', kind: 'missing' }]), []);
});
