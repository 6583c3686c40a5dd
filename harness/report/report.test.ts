import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import t from 'tap';
import * as v from 'valibot';
import { CRITERIA, type Judgement } from '../engine/judgement.ts';
import { compose, type ReportInput } from './compose.ts';
import { reportSchema } from './document.ts';
import { md } from './escape.ts';
import { figure, limit, margin, measured, quantity } from './figures.ts';
import { digestOf, REPORT_FILES, statedDigest } from './render.ts';
import { badWeek } from './testing/bad-week.ts';
import { forms, textOfPage, unescaped } from './testing/forms.ts';
import { nothing, perfectWeek, tenMinutes } from './testing/runs.ts';

const RUNS: Readonly<Record<string, () => ReportInput>> = { perfectWeek, badWeek, tenMinutes, nothing };
const schema = JSON.parse(readFileSync(`${import.meta.dirname}/../../docs/harness-report.schema.json`, 'utf8')) as object;
const validate = new Ajv2020({ allErrors: true, strict: true, allowUnionTypes: true, formats: { 'date-time': true } }).compile(schema);

for (const [name, run] of Object.entries(RUNS)) {
  t.test(`${name}: report.json matches its schema`, async (t) => {
    const { document, files } = await forms(run());
    const read = JSON.parse(files['report.json']) as object;
    t.same(read, JSON.parse(JSON.stringify(document)), 'the readable form is the same document');
    t.equal(validate(read), true, JSON.stringify(validate.errors?.slice(0, 3)));
    t.equal(v.safeParse(reportSchema, read).success, true);
  });

  t.test(`${name}: all four formats have the same figures for every criterion`, async (t) => {
    const { document, files } = await forms(run());
    const json = JSON.parse(files['report.json']) as typeof document;
    const page = textOfPage(files['report.html']);
    const markdown = files['report.md'];
    const junit = unescaped(files['junit.xml']);
    t.same(
      json.judgements.map(({ criterion }) => criterion),
      CRITERIA,
    );
    for (const judgement of json.judgements) {
      const figures = [measured(judgement), limit(judgement), margin(judgement), ...judgement.evidence.map(quantity)];
      for (const text of [...figures, judgement.verdict, judgement.summary, judgement.formula]) {
        t.ok(page.includes(text), `report.html: ${judgement.title}: ${text}`);
        t.ok(markdown.includes(md(text)), `report.md: ${judgement.title}: ${text}`);
        if (judgement.verdict !== 'PASS' || figures.includes(text)) t.ok(junit.includes(text), `junit.xml: ${judgement.title}: ${text}`);
      }
    }
    for (const text of [page, junit]) t.ok(text.includes(document.statement), 'the statement');
    t.ok(markdown.includes(md(document.statement)));
  });
}

t.test('the other files state the SHA-256 of report.json', async (t) => {
  const { files } = await forms(badWeek());
  const digest = digestOf(files['report.json']);
  t.match(digest, /^[0-9a-f]{64}$/);
  for (const file of REPORT_FILES) if (file !== 'report.json') t.equal(statedDigest(file, files[file]), digest, file);
  t.not(digestOf(`${files['report.json']} `), digest);
  t.equal(statedDigest('report.md', 'nothing of the kind'), null);
});

t.test('rounding neither shows 100 % for less nor crosses a limit', async (t) => {
  const of = (value: number | null, comparison: '<' | '<=' | '>' | '>=', bound: number, unit = '%') => ({
    measured: { label: '', value, unit },
    limit: { comparison, value: bound, unit },
    margin: value === null ? null : comparison.startsWith('<') ? bound - value : value - bound,
  });
  t.equal(measured(of(99.9998, '>', 99)), '99.9998 %');
  t.equal(measured(of(99.00004, '>', 99)), '99.00004 %');
  t.equal(measured(of(98.99996, '>', 99)), '98.99996 %');
  t.equal(measured(of(99, '>', 99)), '99 %');
  t.equal(measured(of(9.999, '<', 10)), '9.999 %');
  t.equal(measured(of(10.0001, '<', 10)), '10.0001 %');
  t.equal(measured(of(0.0123456, '<', 10)), '0.0123 %');
  t.equal(measured(of(300.04, '<=', 300, 's')), '300.04 s');
  t.equal(measured(of(12_345.678, '<=', 300, 's')), '12,345.68 s');
  t.equal(figure(167.9999, 'h'), '167.9999 h');
  t.equal(figure(99.99996, '%'), '99.99996 %');
  t.equal(figure(604_800, ''), '604,800');
  t.equal(figure(0.30000000000000004, 's'), '0.3 s');
  t.equal(figure(Number.NaN, 's'), 'not measured');
  t.equal(measured(of(null, '<', 10)), 'not measured');
  t.equal(margin(of(10.5, '<', 10)), '0.5 % beyond the limit');
  t.equal(margin(of(98.5, '>', 99)), '0.5 % short of the limit');
  t.equal(margin(of(10, '<', 10)), 'on the limit: too much');
  t.equal(margin(of(300, '<=', 300, 's')), 'on the limit: allowed');
  t.equal(margin(of(99, '>', 99)), 'on the limit: not enough');
  t.equal(margin(of(168, '>=', 168, 'h')), 'on the limit: enough');
  t.equal(margin(of(null, '<', 10)), 'not measured');
});

t.test('junit.xml counts failures and errors', async (t) => {
  const { files } = await forms(badWeek());
  const xml = files['junit.xml'];
  t.match(xml, /<testsuite id="0" .*tests="6" failures="4" errors="1" skipped="0"/);
  t.equal(xml.match(/<failure /g)?.length, 4);
  t.equal(xml.match(/<error /g)?.length, 1, 'missing evidence is an error: a skipped test would count as passed');
  t.equal(xml.match(/<testcase /g)?.length, 6);
  t.notMatch(xml, /<skipped/);
  t.match(xml, /timestamp="\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"/);
  // The order that the schema of the Ant task requires.
  t.match(xml, /<properties>.*<\/properties>\s*(<testcase.*)+<system-out>.*<\/system-out>\s*<system-err><\/system-err>\s*<\/testsuite>/s);
});

t.test('nothing passes without a judgement of every criterion', async (t) => {
  const input = perfectWeek();
  t.equal(compose(input).verdict, 'PASS');
  t.equal(compose({ ...input, judgements: input.judgements.slice(1) }).verdict, 'INCOMPLETE');
  t.equal(compose({ ...input, judgements: [] }).verdict, 'INCOMPLETE');
  const failed: Judgement = { ...(input.judgements[0] as Judgement), verdict: 'FAIL' };
  t.equal(compose({ ...input, judgements: [failed] }).verdict, 'FAIL');
});
