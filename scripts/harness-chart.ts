import { build } from 'esbuild';
import type { PageAssets } from '../harness/report/html.ts';

/** Bundles the parts that are embedded in report.html of the harness: the script that draws the charts, and the style sheet. */
export async function bundleHarnessChart(): Promise<PageAssets> {
  const { outputFiles } = await build({
    absWorkingDir: `${import.meta.dirname}/..`,
    entryPoints: [
      { in: 'harness/report/page/main.ts', out: 'harness-chart' },
      { in: 'harness/report/page/style.css', out: 'harness-chart' },
    ],
    outdir: 'dist',
    write: false,
    bundle: true,
    minify: true,
    format: 'iife',
    target: 'es2022',
    charset: 'utf8',
    legalComments: 'inline',
    logLevel: 'warning',
  });
  const text = (extension: string): string => outputFiles.find(({ path }) => path.endsWith(extension))?.text ?? '';
  return { script: text('.js'), style: text('.css') };
}
