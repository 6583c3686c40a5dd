import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../testkit/effort.ts';
import { data, markup, md, visible } from './escape.ts';
import { forms } from './testing/forms.ts';
import { HOSTILE, named } from './testing/hostile.ts';

fc.configureGlobal({ seed: SEED });

for (const text of HOSTILE) {
  t.test(`harmless: ${JSON.stringify(text)}`, async (t) => {
    const { document, files } = await forms(named(text));
    t.equal((JSON.parse(files['report.json']) as typeof document).run.node_name, text);

    const page = files['report.html'];
    t.equal(page.match(/<script\b/g)?.length, 2, 'no script but the data and our own');
    t.equal(page.match(/<\/script/g)?.length, 2);
    t.equal(page.match(/<meta name="report-json-sha256"/g)?.length, 1);
    const written = page.replaceAll(/<(script|style)\b[^>]*>.*?<\/\1>/gs, '');
    t.notMatch(written, /<(?:img|evil|b|script)\b/);
    t.notOk(INVISIBLE.test(written), 'nothing is hidden');

    const xml = files['junit.xml'];
    t.notMatch(xml, INVISIBLE);
    t.notMatch(xml, /<evil|<script|<!--|<!\[CDATA|\]\]>/);
    t.equal(xml.match(/<\/system-out>/g)?.length, 1);
    t.notMatch(xml.replaceAll(/<[^<>]*>/g, ''), /[<>"']/, 'all text is escaped');
    t.equal(xml.replaceAll(/&(?:lt|gt|amp|quot|apos);/g, '').includes('&'), false);

    const markdown = files['report.md'];
    t.notMatch(markdown, INVISIBLE);
    t.notMatch(markdown, /<[a-z!/]/i, 'no HTML');
    t.equal(markdown.match(/^SHA-256 of report\.json: /gm)?.length, 1);
    t.notMatch(markdown, /^# heading|^\| a \|/m);
    t.notMatch(markdown, /(?<!\\)\]\(/, 'no link');
  });
}

const EFFORT = { numRuns: runs(40, 2000), seed: SEED };
const INVISIBLE = /(?![\t\n])\p{Cc}|[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufffe\uffff]/u;

t.test('no text can add markup to HTML, XML or Markdown', async (t) => {
  const anything = fc.string({ unit: 'binary', maxLength: 60 });
  fc.assert(
    fc.property(anything, (text) => {
      const page = markup`<p title="${text}">${text}</p>`.text;
      return page.match(/[<>]/g)?.length === 4 && page.match(/"/g)?.length === 2 && !INVISIBLE.test(page) && page.isWellFormed();
    }),
    EFFORT,
  );
  fc.assert(
    fc.property(anything, (text) => !/(?<!\\)(?:\\\\)*(?:[`*[\]|]|<[^ \d=]|^>)/.test(md(text)) && !/[\r\n]/.test(md(text))),
    EFFORT,
  );
  fc.assert(
    fc.property(
      fc.jsonValue(),
      (value) => !/[<>&]/.test(data(value).text) && JSON.stringify(JSON.parse(data(value).text)) === JSON.stringify(value),
    ),
    EFFORT,
  );
  t.equal(visible('a\tb\r\nc'), 'a b c');
  t.equal(visible('a\u0000b'), 'a\\x00b');
  t.equal(md('health_monitor _x_ 1. y'), 'health_monitor \\_x\\_ 1. y');
  t.equal(md('- item'), '\\- item');
  t.equal(md('> 99 %'), '\\> 99 %');
  t.equal(md('-1.5 of 1.5 < 3'), '-1.5 of 1.5 < 3');
  t.equal(md('1. one &lt;b> <b>'), '1\\. one &amp;lt;b> &lt;b>');
});
