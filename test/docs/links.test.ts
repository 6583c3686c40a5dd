import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import t from 'tap';
import { ROOT } from '../../testkit/service/service.ts';

const PAGES = globSync(
  ['*.md', '.github/**/*.md', 'docs/**/*.md', '{ops,systemd,harness,dashboard,bench,testkit,config,launch}/**/*.md', 'src/**/*.md'],
  {
    cwd: ROOT,
  },
).filter((page) => !page.includes('node_modules'));

/** Markdown without code, in which nothing is a link. */
const prose = (text: string): string =>
  text.replace(/^(```|~~~)[\s\S]*?^\1/gm, '').replace(/`[^`\n]*`/g, (code) => 'x'.repeat(code.length));

/** The anchor that GitHub and most renderers give to a heading. */
function anchor(heading: string): string {
  const plain = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/[`*]/g, '');
  return plain
    .trim()
    .toLowerCase()
    .replace(/[^\p{Letter}\p{Number}\p{Mark}\s_-]/gu, '')
    .replace(/\s/g, '-');
}

function anchorsOf(file: string): Set<string> {
  const found = new Set<string>();
  const text = readFileSync(file, 'utf8').replace(/^(```|~~~)[\s\S]*?^\1/gm, '');
  for (const [, heading = ''] of text.matchAll(/^#{1,6} +(.+)$/gm)) {
    const base = anchor(heading);
    let name = base;
    for (let number = 1; found.has(name); number += 1) name = `${base}-${number}`;
    found.add(name);
  }
  for (const [, id = ''] of text.matchAll(/\bid="([^"]+)"/g)) found.add(id);
  return found;
}

t.test('every link of the documentation leads to a file, and every anchor to a heading', async (t) => {
  t.ok(PAGES.length > 20, `${PAGES.length} pages`);
  let count = 0;
  for (const page of PAGES) {
    for (const [, link = ''] of prose(readFileSync(join(ROOT, page), 'utf8')).matchAll(/\]\(<?([^)>\s]+)>?(?: "[^"]*")?\)/g)) {
      if (/^[a-z]+:/.test(link)) continue;
      count += 1;
      const [path = '', fragment] = link.split('#');
      const target = path === '' ? join(ROOT, page) : resolve(ROOT, dirname(page), decodeURIComponent(path));
      if (!existsSync(target)) t.fail(`${page}: ${link}: there is no ${relative(ROOT, target)}`);
      // The package installs docs/ alone, as /usr/share/doc/edge-health.
      else if (page.startsWith('docs/') && !target.startsWith(join(ROOT, 'docs/'))) t.fail(`${page}: ${link} is not installed with it`);
      else if (fragment && target.endsWith('.md') && !anchorsOf(target).has(fragment)) t.fail(`${page}: ${link}: there is no such heading`);
    }
  }
  t.ok(count > 100, `${count} links`);
});

/** Four lines of a page of this width. */
const MAX_PARAGRAPH = 4 * 120;

t.test('paragraphs and list items have at most four lines', async (t) => {
  for (const page of PAGES.filter((page) => /^(?:README\.md|docs\/)/.test(page) && !page.startsWith('docs/develop/reports/'))) {
    const text = readFileSync(join(ROOT, page), 'utf8').replace(/^(```|~~~)[\s\S]*?^\1/gm, '');
    for (const line of text.split('\n')) {
      const shown = line.replace(/\]\([^)]*\)/g, ']');
      if (!line.startsWith('|') && shown.length > MAX_PARAGRAPH) t.fail(`${page}: ${shown.length} characters: ${line.slice(0, 60)}…`);
    }
  }
});
