import { bundleHarnessChart } from '../../../scripts/harness-chart.ts';
import { compose, type ReportInput } from '../compose.ts';
import type { ReportDocument } from '../document.ts';
import type { PageAssets } from '../html.ts';
import { type ReportFile, render } from '../render.ts';

let bundled: Promise<PageAssets> | null = null;

/** Script and style sheet as built from these sources. */
export function assets(): Promise<PageAssets> {
  bundled ??= bundleHarnessChart();
  return bundled;
}

export async function forms(input: ReportInput): Promise<{ document: ReportDocument; files: Readonly<Record<ReportFile, string>> }> {
  const document = compose(input);
  return { document, files: render(document, await assets()) };
}

/** The text of a page, without script, style sheet, data and tags. */
export function textOfPage(html: string): string {
  return unescaped(
    html
      .replaceAll(/<(script|style)\b[^>]*>.*?<\/\1>/gs, '')
      .replaceAll(/<[^>]*>/g, ' ')
      .replaceAll(/\s+/g, ' '),
  );
}

export function unescaped(text: string): string {
  return text
    .replaceAll(/&(lt|gt|quot|apos|#39);/g, (_, name: string) => ({ lt: '<', gt: '>', quot: '"', apos: "'", '#39': "'" })[name] as string)
    .replaceAll('&amp;', '&');
}
