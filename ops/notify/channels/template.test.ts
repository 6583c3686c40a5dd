import { globSync, readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import t from 'tap';
import { messageOf, testMessage } from '../message.ts';
import { facts, line, open } from '../testing/lines.ts';
import { render, valuesOf } from './template.ts';

const filled = (template: string, values: Record<string, unknown>, type = 'text/plain'): string => render(template, values, type);

t.test('fills in values, lists and conditional sections', async (t) => {
  t.equal(filled('{{a}}-{{ b }}', { a: 'x', b: 3 }), 'x-3');
  t.equal(filled('{{#l}}<{{.}}>{{/l}}{{^l}}none{{/l}}', { l: [] }), 'none');
  t.equal(filled('{{#l}}{{.}}{{/l}}', { l: ['a', 'b'] }), 'ab');
  t.equal(filled('{{#yes}}{{a}}{{/yes}}{{#no}}no{{/no}}{{^no}}!{{/no}}', { yes: true, no: 0, a: 'x' }), 'x!');
  t.equal(filled('[{{nothing}}]', { nothing: null }), '[]');
  t.equal(filled('{"a":{"b":{"c":"{{a}}"}}}', { a: 1 }), '{"a":{"b":{"c":"1"}}}', 'braces of JSON are no placeholders');
  t.equal(filled('{{#l}}{{#m}}{{outer}}{{n}}{{/m}}{{/l}}', { outer: 'o', l: [{ m: [{ n: 1 }] }] }), 'o1');
});

t.test('values are escaped for their format, and are never templates themselves', async (t) => {
  const nasty = 'a"b\\c\n\u0007</script>{{a}} & ü';
  t.equal(JSON.parse(filled('{"x": "{{v}}"}', { v: nasty, a: 'no' }, 'application/json')).x, nasty);
  for (const type of ['application/vnd.api+json; charset=utf-8', 'text/json', 'application/x-ndjson', 'Application/JSON'])
    t.same(JSON.parse(filled('{"x": "{{v}}"}', { v: `","y":"${nasty}` }, type)), { x: `","y":"${nasty}` }, type);
  t.equal(filled('<p>{{v}}</p>', { v: '<b>"&' }, 'text/html'), '<p>&#60;b&#62;&#34;&#38;</p>');
  t.equal(filled('text={{v}}', { v: 'a&b=c d' }, 'application/x-www-form-urlencoded'), 'text=a%26b%3Dc%20d');
  t.equal(filled('{{v}}', { v: nasty }, 'text/plain'), nasty);
});

t.test('marks the first and the last item of a list, for commas', async (t) => {
  const message = messageOf(facts, [line('raised', 'CRITICAL', 'a'), line('raised', 'WARNING', 'b')], [open('CRITICAL', 'c')]);
  const template =
    '{{#alerts}}{{#first}}>{{/first}}{{node}}{{^last}}, {{/last}}{{/alerts}}; {{#open}}{{node}}{{^last}}, {{/last}}{{/open}}';
  t.equal(filled(template, valuesOf(message)), '>a, b; c');
});

t.test('an invalid template is an error, and so is an unknown name', async (t) => {
  t.throws(() => filled('a\nb {{#x}} c', { x: 1 }), /Unclosed section "x"/);
  t.throws(() => filled('a\n{{/x}}', { x: 1 }), /Unopened section "x"/);
  t.throws(() => filled('{{#x}}{{/y}}{{/x}}', { x: 1 }), /Unclosed section "x"/);
  t.throws(() => filled('a {{ b', { b: 1 }), /Unclosed tag/);
  t.throws(() => filled('a\n\n{{ a b }}', { a: 1 }), /no placeholder \{\{a b\}\}/);
  t.throws(() => filled('{{sumary}}', { summary: 'x' }), /no placeholder \{\{sumary\}\}/);
  t.throws(() => filled('{{^sumary}}none{{/sumary}}', { summary: 'x' }), /no placeholder \{\{sumary\}\}/);
  t.throws(() => filled('{{#l}}{{m}}{{/l}}', { l: [{ n: 1 }] }), /no placeholder \{\{m\}\}/);
  t.throws(() => filled('{{toString}}', {}), /no placeholder/);
});

/** What the receivers require according to their documentation: each refuses other bodies with status 400. */
const text = (maxLength: number) => ({ type: 'string', minLength: 1, maxLength });
const RECEIVERS: Readonly<Record<string, object>> = {
  'slack.json': {
    type: 'object',
    required: ['text', 'blocks'],
    properties: {
      text: text(40_000),
      blocks: {
        type: 'array',
        maxItems: 50,
        items: {
          type: 'object',
          required: ['type', 'text'],
          properties: {
            type: { enum: ['header', 'section'] },
            text: { type: 'object', required: ['type', 'text'], properties: { type: { const: 'plain_text' }, text: text(3000) } },
          },
        },
      },
    },
  },
  'mattermost.json': {
    type: 'object',
    required: ['attachments'],
    properties: {
      attachments: {
        type: 'array',
        items: {
          type: 'object',
          required: ['fallback', 'color', 'title', 'title_link', 'text', 'fields'],
          properties: {
            color: { type: 'string', pattern: '^#[0-9a-f]{6}$' },
            fields: {
              type: 'array',
              items: { type: 'object', required: ['short', 'title', 'value'], properties: { short: { type: 'boolean' } } },
            },
          },
        },
      },
    },
  },
  'ntfy.json': {
    type: 'object',
    required: ['topic', 'message', 'priority'],
    additionalProperties: false,
    properties: {
      topic: { type: 'string', pattern: '^[-_A-Za-z0-9]{1,64}$' },
      title: text(250),
      message: { type: 'string' },
      priority: { type: 'integer', minimum: 1, maximum: 5 },
      tags: { type: 'array', items: { type: 'string', pattern: '^[a-z_]+$' } },
      click: { type: 'string', pattern: '^https?://' },
    },
  },
  'teams.json': {
    type: 'object',
    required: ['type', 'attachments'],
    properties: {
      type: { const: 'message' },
      attachments: {
        type: 'array',
        minItems: 1,
        items: {
          type: 'object',
          required: ['contentType', 'content'],
          properties: {
            contentType: { const: 'application/vnd.microsoft.card.adaptive' },
            content: {
              type: 'object',
              required: ['type', 'version', 'body'],
              properties: {
                type: { const: 'AdaptiveCard' },
                body: {
                  type: 'array',
                  items: {
                    type: 'object',
                    required: ['type', 'text'],
                    properties: {
                      type: { const: 'TextBlock' },
                      color: { enum: ['Attention', 'Warning', 'Good', 'Accent'] },
                      text: text(4000),
                    },
                  },
                },
                actions: { type: 'array', items: { required: ['type', 'title', 'url'] } },
              },
            },
          },
        },
      },
    },
  },
};

t.test('the examples produce what their receivers accept, whatever the names of nodes and jobs', async (t) => {
  const files = globSync('*.json', { cwd: `${import.meta.dirname}/../templates` }).sort();
  t.same(files, Object.keys(RECEIVERS).sort());
  const nasty = 'ro"bot\\ {{x}} <b> & \u2028 ü';
  const messages = [
    testMessage(facts),
    messageOf(facts, [], [open('WARNING', nasty)]),
    ...(['WARNING', 'ERROR', 'CRITICAL'] as const).map((severity) =>
      messageOf(facts, [line('raised', severity, nasty)], [open(severity, nasty)]),
    ),
    messageOf(facts, [line('resolved', 'CRITICAL', nasty), line('passed', 'ERROR', nasty)], []),
    messageOf(
      facts,
      Array.from({ length: 100 }, (_, i) => line('raised', 'CRITICAL', `robot_${i}`)),
      Array.from({ length: 100 }, (_, i) => open('CRITICAL', `robot_${i}`)),
    ),
  ];
  for (const file of files) {
    const template = readFileSync(`${import.meta.dirname}/../templates/${file}`, 'utf8');
    const validate = new Ajv({ allErrors: true, strict: false }).compile(RECEIVERS[file] as object);
    for (const message of messages) {
      const body = JSON.parse(render(template, valuesOf(message), 'application/json')) as object;
      t.ok(validate(body), `${file}: ${message.status} ${JSON.stringify(validate.errors)}`);
      t.match(JSON.stringify(body), message.status, `${file} has the status`);
    }
  }
});
