import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { addonFile } from '../../../src/ros/rclnodejs/prepared.ts';
import { provideAddon } from '../../../src/ros/rclnodejs/setup/addon.ts';
import type { Workspace } from '../../../src/ros/rclnodejs/setup/run-command.ts';
import type { SourcedRos } from '../../../src/ros/rclnodejs/sourced-environment.ts';
import { fakePrefix, write } from '../../../src/ros/rclnodejs/testing/trees.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { ROOT } from '../../../testkit/service/service.ts';

/** The addon of rclnodejs, with a real compiler, make, Python and node-gyp, and an rclnodejs of one function in place of the real one. */

t.setTimeout(600_000);

const NODE_GYP = join(ROOT, 'node_modules/node-gyp');
const PREBUILDS = `prebuilds/linux-${process.arch}`;
/** An addon according to Node-API, without its headers. */
const BARE_ADDON = 'void *napi_register_module_v1(void *env, void *exports) { (void)env; return exports; }\n';
/** Looks for ros2 on the PATH and uses the headers beside it, as rclnodejs does. */
const GYP = `{ 'targets': [{
  'target_name': 'rclnodejs',
  'sources': ['./src/addon.cpp'],
  'include_dirs': ["<!(node -p \\"require('./scripts/root.cjs')\\")/include/rcl"],
}] }\n`;
const ROOT_SCRIPT = `const { execSync } = require('node:child_process');
module.exports = require('node:path').join(execSync('which ros2').toString().trim(), '../..');\n`;

function workspace(t: Test, source: string): Workspace & { readonly lines: string[] } {
  const root = temporaryFolder(t);
  const rclnodejs = join(root, 'node_modules/rclnodejs');
  write(rclnodejs, {
    'package.json': '{ "name": "rclnodejs" }',
    'binding.gyp': GYP,
    'src/addon.cpp': source,
    'src/rcl_utilities.cpp': '',
    'scripts/root.cjs': ROOT_SCRIPT,
  });
  write(rclnodejs, { [`${PREBUILDS}/humble-jammy-${process.arch}-node-rclnodejs.node`]: 'of another distribution' });
  symlinkSync(NODE_GYP, join(root, 'node_modules/node-gyp'));
  const copy = join(root, 'copy');
  write(copy, { 'node_modules/rclnodejs/package.json': '{ "name": "rclnodejs" }' });
  const overlay = temporaryFolder(t);
  const prefix = fakePrefix(t);
  // The header of the overlay takes precedence over that of the distribution.
  write(overlay, { 'include/rcl/rcl.h': '#define RCL_ANSWER 42\n' });
  write(prefix, { 'include/rcl/rcl.h': '#error the wrong one\n', 'include/rmw/rmw.h': '' });
  const ros: SourcedRos = { state: 'sourced', distro: 'jazzy', prefixes: [overlay, prefix], librcl: join(prefix, 'lib/librcl.so') };
  const lines: string[] = [];
  return {
    ros,
    paths: { rclnodejs, interfaces: '' },
    folder: copy,
    environment: process.env,
    user: null,
    logFile: join(root, 'setup.log'),
    onProgress: (line) => lines.push(line),
    lines,
  };
}

const loads = (file: string): boolean => spawnSync(process.execPath, ['-e', 'require(process.argv[1])', file]).status === 0;

t.test('a prebuilt addon that loads is used', async (t) => {
  const given = workspace(t, '#error not to be compiled\n');
  const source = join(temporaryFolder(t), 'addon.c');
  write(join(source, '..'), { 'addon.c': BARE_ADDON });
  write(given.paths.rclnodejs, { [`${PREBUILDS}/jazzy-aaaa-${process.arch}-node-rclnodejs.node`]: 'needs another libc' });
  write(given.paths.rclnodejs, { [`${PREBUILDS}/jazzy-noble-${process.arch}-electron-rclnodejs.node`]: 'for electron' });
  const built = spawnSync('cc', [
    '-shared',
    '-fPIC',
    '-o',
    join(given.paths.rclnodejs, PREBUILDS, `jazzy-noble-${process.arch}-node-rclnodejs.node`),
    source,
  ]);
  t.equal(built.status, 0, built.stderr?.toString());
  t.equal(await provideAddon(given), 'prebuilt');
  t.ok(loads(addonFile(given.folder)));
  t.same(given.lines, []);
});

t.test('otherwise one is compiled with all prefixes at once, and intermediate files are removed', async (t) => {
  const given = workspace(t, `#include <rcl.h>\n#include <node_api.h>\nstatic_assert(RCL_ANSWER == 42);\nextern "C" ${BARE_ADDON}`);
  write(given.paths.rclnodejs, { [`${PREBUILDS}/jazzy-noble-${process.arch}-node-rclnodejs.node`]: 'no library' });
  // Where Python writes bytecode, if it does: by default beside node-gyp, in the package.
  const compiled = temporaryFolder(t);
  const environment = { ...given.environment, PYTHONPYCACHEPREFIX: compiled, PYTHONDONTWRITEBYTECODE: '' };
  t.equal(await provideAddon({ ...given, environment }), 'compiled');
  t.same(readdirSync(compiled), [], 'nothing is left beside node-gyp');
  t.ok(loads(addonFile(given.folder)));
  t.match(given.lines, [/compiling one/]);
  const copy = join(given.folder, 'node_modules/rclnodejs');
  t.same(readdirSync(copy).sort(), ['build', 'package.json']);
  t.same(readdirSync(join(copy, 'build/Release')), ['rclnodejs.node']);
  t.same(readdirSync(given.folder), ['node_modules']);
  t.notOk(existsSync(join(given.paths.rclnodejs, 'build')), 'nothing is built in the installed one');
});

t.test('an addon that does not compile fails with the compiler’s error', async (t) => {
  const given = workspace(t, '#include <rcl.h>\n#error this rcl is too old\n');
  await t.rejects(provideAddon(given), { name: 'SetupFailed', message: /compiling rclnodejs failed .*\n.*this rcl is too old/ });
  t.match(readFileSync(given.logFile, 'utf8'), /this rcl is too old/);
});

t.test('an addon that compiles but does not load is refused', async (t) => {
  const given = workspace(
    t,
    `extern "C" void missing_in_this_rcl();\nextern "C" void *napi_register_module_v1(void *, void *exports) { missing_in_this_rcl(); return exports; }\n`,
  );
  await t.rejects(provideAddon(given), { name: 'SetupFailed', message: /does not load: .*missing_in_this_rcl/ });
});
