/**
 * The build of this checkout, installed as by the package, in an overlay of this machine's file system in a separate mount namespace:
 * changes are discarded with it. Needs root. There is no systemd: `systemctl` only records its arguments and the user id.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type Teardown, temporaryFolder } from '../folder.ts';
import { ROOT } from '../service/service.ts';

/** $1: folder with the sub-folders root and over; $2: the checkout; $3: its Node. */
const INSTALL = `
set -eu
root=$1/root
mount -t tmpfs tmpfs "$1/over"
mkdir "$1/over/upper" "$1/over/work"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/over/upper,workdir=$1/over/work" "$root"
for folder in proc dev sys; do mount --rbind "/$folder" "$root/$folder"; done
for folder in run tmp dev/shm; do mount -t tmpfs -o mode=1777 tmpfs "$root/$folder"; done
program=$root/usr/lib/edge-health
rm -rf "$program" "$root/etc/edge-health" "$root"/var/lib/edge-health*
mkdir -p "$program/runtime/bin" "$program/ros2" "$program/node_modules" "$root/etc/edge-health"
cp -R "$2/bin" "$2/dist" "$program/"
cp -R "$2/ros2/edge_health_interfaces" "$program/ros2/"
mkdir "$program/node_modules/rclnodejs"
cp "$2/node_modules/rclnodejs/package.json" "$program/node_modules/rclnodejs/"
sed 's/"private": true,/"private": true, "packaged": true,/' "$2/package.json" >"$program/package.json"
touch "$program/runtime/bin/node"
mount --bind "$3" "$program/runtime/bin/node"
ln -sf ../lib/edge-health/bin/edge-health "$root/usr/bin/edge-health"
cat >"$root/usr/bin/systemctl.new" <<'STUB'
#!/bin/sh
echo "$(id -u) $*" >>/run/systemctl.log
STUB
chmod 755 "$root/usr/bin/systemctl.new"
mv "$root/usr/bin/systemctl.new" "$root/usr/bin/systemctl"
touch "$root/run/systemctl.log"
chmod 666 "$root/run/systemctl.log"
chroot "$root" useradd --system --home-dir /var/lib/edge-health --shell /usr/sbin/nologin edge-health
install -d -m 750 -o "$(chroot "$root" id -u edge-health)" -g "$(chroot "$root" id -g edge-health)" "$root/var/lib/edge-health"
echo ready
exec sleep infinity
`;

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export class InstalledCopy {
  readonly #holder: ChildProcess;
  readonly #folder: string;

  private constructor(holder: ChildProcess, folder: string) {
    this.#holder = holder;
    this.#folder = folder;
  }

  static async make(t: Teardown): Promise<InstalledCopy> {
    const folder = temporaryFolder(t);
    for (const name of ['root', 'over']) mkdirSync(join(folder, name));
    const script = ['--mount', '--propagation', 'private', 'sh', '-c', INSTALL, 'install', folder, ROOT, process.execPath];
    const holder = spawn('unshare', script, { stdio: ['ignore', 'pipe', 'inherit'] });
    t.teardown(async () => {
      const gone = once(holder, 'exit');
      if (holder.exitCode === null && holder.kill('SIGKILL')) await gone;
    });
    for await (const line of createInterface({ input: holder.stdout as NodeJS.ReadableStream })) if (line === 'ready') break;
    return new InstalledCopy(holder, folder);
  }

  /** Runs a program in the copy to its end, as root or another user, with only PATH, LC_ALL and the given environment. */
  run(argv: readonly string[], { user = 'root', environment = {}, input = '' } = {}): Finished {
    const variables = Object.entries({ PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C.UTF-8', ...environment });
    const env = ['env', '-i', ...variables.map(([name, value]) => `${name}=${value}`)];
    return this.#enter(['chroot', `--userspec=${user}:`, join(this.#folder, 'root'), ...env, ...argv], input);
  }

  #enter(argv: readonly string[], input = ''): Finished {
    const enter = ['--target', String(this.#holder.pid), '--mount', ...argv];
    const { error, status, stdout, stderr } = spawnSync('nsenter', enter, { encoding: 'utf8', input });
    if (error) throw error;
    return { code: status, stdout, stderr };
  }

  /** One line with owner, mode, size and time for each file created or changed in the copy, except below `folder`. */
  changes(folder: string): string {
    const upper = join(this.#folder, 'over/upper');
    const excluded = ['-path', `${upper}${folder}`, '-prune', '-o'];
    return this.#enter(['find', upper, ...excluded, '!', '-path', upper, '-printf', '/%P %u:%g %m %s %T@ %l\n']).stdout;
  }

  /** Runs a shell script; returns its standard output. Throws if it fails. */
  sh(script: string, options: Parameters<InstalledCopy['run']>[1] = {}): string {
    const { code, stderr, stdout } = this.run(['sh', '-euc', script], options);
    if (code !== 0) throw new Error(`${script}: exited with ${code}\n${stderr}${stdout}`);
    return stdout.trimEnd();
  }
}
