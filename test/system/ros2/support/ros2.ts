import { type ExecFileException, execFile, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { type Host, networkUnavailable } from '../../../../testkit/network/network.ts';
import { ROOT } from '../../../../testkit/service/service.ts';

const sourced = process.env['AMENT_PREFIX_PATH'] !== undefined && spawnSync('ros2', ['--help']).status === 0;

/** Why programs of ROS 2 cannot run in hosts here; false if they can. Intended for the `skip` of tap. */
export function ros2Unavailable(): string | false {
  return sourced ? networkUnavailable() : 'needs a sourced ROS 2';
}

/** The middlewares that are installed. */
export function middlewares(): string[] {
  return ['rmw_cyclonedds_cpp', 'rmw_fastrtps_cpp'].filter((name) => sourced && spawnSync('ros2', ['pkg', 'prefix', name]).status === 0);
}

/** The sourced ROS 2, with the messages of the product. */
export interface Ros {
  readonly environment: NodeJS.ProcessEnv;
  readonly folder: string;
}

/** Builds the packages with cmake, as a user of ROS 2 would; returns their environment. */
export function buildPackages(folder: string): NodeJS.ProcessEnv {
  const prefix = join(folder, 'install');
  for (const name of ['edge_health_interfaces', 'edge_health']) {
    const build = join(folder, name);
    const steps = [
      ['-S', join(ROOT, 'ros2', name), '-B', build, `-DCMAKE_INSTALL_PREFIX=${prefix}`, '-DBUILD_TESTING=OFF'],
      ['--build', build],
      ['--install', build],
    ];
    for (const args of steps) {
      const { status, stdout, stderr } = spawnSync('cmake', args, { encoding: 'utf8' });
      if (status !== 0) throw new Error(`cmake ${args.join(' ')}: ${status}\n${stdout}\n${stderr}`);
    }
  }
  const python = spawnSync(
    'sh',
    ['-c', `ls -d ${prefix}/lib/python3*/site-packages ${prefix}/local/lib/python3*/dist-packages 2>/dev/null`],
    {
      encoding: 'utf8',
    },
  ).stdout.trim();
  return {
    ...process.env,
    NODE_OPTIONS: '',
    AMENT_PREFIX_PATH: `${prefix}:${process.env['AMENT_PREFIX_PATH']}`,
    LD_LIBRARY_PATH: `${prefix}/lib:${process.env['LD_LIBRARY_PATH'] ?? ''}`,
    PYTHONPATH: `${python.split('\n')[0]}:${process.env['PYTHONPATH'] ?? ''}`,
    ROS_LOG_DIR: join(folder, 'log'),
    // The shell that runs the tests may have another domain or range; only the tests use these hosts.
    ROS_DOMAIN_ID: '0',
    ROS_AUTOMATIC_DISCOVERY_RANGE: 'SUBNET',
    FASTDDS_BUILTIN_TRANSPORTS: 'UDPv4',
  };
}

/** Runs a program of ROS 2 in a host; returns what it printed, even if it had to be ended after `seconds`. */
export function ros2(host: Host, { environment, folder }: Ros, middleware: string, args: readonly string[], seconds = 30): Promise<string> {
  const [program, argv] = host.command(args[0] === 'python3' ? 'python3' : 'ros2', args[0] === 'python3' ? args.slice(1) : args);
  const env = { ...environment, RMW_IMPLEMENTATION: middleware, PYTHONUNBUFFERED: '1' };
  return new Promise((resolve, reject) => {
    // SIGKILL: rclpy sometimes loses a SIGTERM.
    execFile(
      program,
      argv,
      { env, cwd: folder, timeout: seconds * 1000, killSignal: 'SIGKILL' },
      (error: ExecFileException | null, output, errors) => {
        if (error && !error.killed) reject(new Error(`ros2 ${args.join(' ')}: ${error.code}\n${output}\n${errors}`));
        else resolve(output);
      },
    );
  });
}
