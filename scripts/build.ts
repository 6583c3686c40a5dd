/** Builds dist/: the programs as one CommonJS file each, the dashboard, and the OpenAPI document. */
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { DASHBOARD_BUILD } from './dashboard.ts';
import { bundleHarnessChart } from './harness-chart.ts';

const out = 'dist';

// CommonJS, because an ES module import of node:http evaluates all of its lazy exports, which loads the fetch client and takes 14 MB of
// resident memory.
await build({
  entryPoints: {
    main: 'src/main.ts',
    'store-worker': 'src/store/thread/worker.ts',
    inventory: 'src/system/inventory-program.ts',
    'stop-helper': 'src/shutdown/stop-helper-program.ts',
    ops: 'ops/main.ts',
    harness: 'harness/main.ts',
    'ros-probe': 'src/ros/rclnodejs/probe-program.ts',
  },
  outdir: out,
  outExtension: { '.js': '.cjs' },
  bundle: true,
  platform: 'node',
  target: 'node26',
  format: 'cjs',
  minifySyntax: true,
  banner: { js: "const __moduleUrl = require('node:url').pathToFileURL(__filename).href;" },
  define: { 'import.meta.url': '__moduleUrl' },
  // The Node build of ulid loads OpenSSL for random numbers, which this project passes in.
  alias: { ulid: './node_modules/ulid/dist/browser/index.js' },
  // Converts import() to require(), because the first import() loads the ES module loader, which takes 7 MB.
  supported: { 'dynamic-import': false },
  legalComments: 'linked',
  logLevel: 'warning',
});

// Script and style sheet embedded in report.html of the harness.
const { script, style } = await bundleHarnessChart();
writeFileSync(`${out}/harness-chart.js`, script);
writeFileSync(`${out}/harness-chart.css`, style);

const dashboard = `${out}/dashboard`;
rmSync(dashboard, { recursive: true, force: true });
mkdirSync(dashboard, { recursive: true });
const page = { ...DASHBOARD_BUILD, outdir: dashboard, minify: true, target: 'es2022', legalComments: 'linked' } as const;
await build({ ...page, entryPoints: ['dashboard/src/event-worker.ts'] });
const workerHash = createHash('sha256')
  .update(readFileSync(`${dashboard}/event-worker.js`))
  .digest('hex')
  .slice(0, 12);
await build({ ...page, entryPoints: ['dashboard/src/main.tsx'], define: { EVENT_WORKER_HASH: JSON.stringify(workerHash) } });
cpSync('dashboard/index.html', `${dashboard}/index.html`);
cpSync('dashboard/public', dashboard, { recursive: true });
// Served instead of the file to browsers that accept them.
for (const name of readdirSync(dashboard, { recursive: true, encoding: 'utf8' })) {
  if (!/\.(js|css|svg|html|webmanifest)$/.test(name)) continue;
  const bytes = readFileSync(`${dashboard}/${name}`);
  writeFileSync(`${dashboard}/${name}.br`, brotliCompressSync(bytes));
  writeFileSync(`${dashboard}/${name}.gz`, gzipSync(bytes, { level: 9 }));
}

cpSync('docs/openapi.json', `${out}/openapi.json`);
writeFileSync(`${out}/.built`, '');
