import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { BuildOptions, Plugin } from 'esbuild';

const ROOT = join(import.meta.dirname, '..');
const VIEWS = join(ROOT, 'dashboard/src/views');

/** The module `views`: the default exports of `views/*\/view.tsx`, in navigation order. */
const viewsPlugin: Plugin = {
  name: 'views',
  setup: (build) => {
    build.onResolve({ filter: /^views$/ }, () => ({ path: 'views', namespace: 'views' }));
    build.onLoad({ filter: /.*/, namespace: 'views' }, () => {
      const names = readdirSync(VIEWS).filter((name) => existsSync(join(VIEWS, name, 'view.tsx')));
      const imports = names.map((name) => `import ${name} from './${name}/view.tsx';`).join('\n');
      return {
        contents: `${imports}\nexport const views = [${names.join(', ')}].sort((a, b) => a.order - b.order);`,
        resolveDir: VIEWS,
        watchDirs: [VIEWS],
      };
    });
  },
};

/** How the page is bundled; tests bundle parts of it in the same way. */
export const DASHBOARD_BUILD = {
  absWorkingDir: ROOT,
  bundle: true,
  format: 'esm',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  plugins: [viewsPlugin],
  logLevel: 'warning',
} as const satisfies BuildOptions;
