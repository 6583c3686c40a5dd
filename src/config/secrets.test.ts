import t from 'tap';
import { parseConfig } from './parse.ts';
import { redactSecrets, withSecretsOf } from './secrets.ts';

const URL = 'https://hooks.example/T00/B00/very-secret';
const FILE = `# of robot 7
node_name: robot7 # stays
ops:
  notify:
    # was ${URL} before
    webhook:
      url: "${URL}" # the channel of operations
      token_file: /etc/edge-health/token
`;

t.test('a text that is refused before all of it was parsed has unknown secrets', async (t) => {
  for (const text of [`a: &a 1\nb: [${'*a,'.repeat(51)}]`, `#${'x'.repeat(65_536)}`, '['.repeat(1000)]) {
    t.equal(redactSecrets(text), null, text.slice(0, 20));
    t.same(withSecretsOf(text, text), { text, missing: [] });
  }
});

t.test('secrets are removed from a text, and everything else is preserved', async (t) => {
  const found = redactSecrets(FILE);
  t.same(found?.keys, ['ops.notify.webhook.url']);
  t.equal(found?.text, FILE.replace(`"${URL}"`, 'REDACTED').replace(URL, 'REDACTED'));
  t.equal(redactSecrets('node_name: a\n')?.text, 'node_name: a\n');
  t.equal(redactSecrets('a: [\n'), null, 'the secrets of an invalid text are unknown');
  for (const [what, text] of Object.entries({
    'a value of several lines': `ops:\n  notify:\n    webhook:\n      url: >-\n        ${URL}\n      content_type: text/plain\n`,
    'a flow mapping': `ops: {notify: {webhook: {url: ${URL}, content_type: text/plain}}}\n`,
    'an alias': `ops:\n  notify:\n    dashboard_url: &a ${URL}\n    webhook: {url: *a, content_type: text/plain}\n`,
    'an alias of a section': `a: &a {url: ${URL}, content_type: text/plain}\nops: {notify: {webhook: *a}}\n`,
    'a key that is not one of the configuration': `ops: {notify: {email: {smtp_password: ${URL}, content_type: text/plain}}}\n`,
    'the same key twice': `ops: {notify: {webhook: {url: x, url: ${URL}, content_type: text/plain}}}\n`,
  })) {
    const redacted = redactSecrets(text)?.text ?? URL;
    t.notMatch(redacted, URL, what);
    t.match(redacted, /text\/plain/, `${what}: and no more than that`);
    t.not(redactSecrets(redacted), null, 'it still parses');
  }
});

t.test('secrets are restored from the current file', async (t) => {
  const redacted = redactSecrets(FILE)?.text ?? '';
  t.match(parseConfig(redacted, 'f.yaml'), {
    ok: false,
    errors: [{ line: 7, key: 'ops.notify.webhook.url', found: '"REDACTED"', allowed: /which backups omit/ }],
  });
  const present = 'ops: {notify: {webhook: {url: "https://new.example/\\"1"}}}\n';
  const { missing, text } = withSecretsOf(redacted, present);
  t.same(missing, []);
  t.match(parseConfig(text, 'f.yaml'), {
    ok: true,
    config: { node_name: 'robot7', ops: { notify: { webhook: { url: 'https://new.example/"1' } } } },
  });
  for (const other of [null, 'node_name: a\n', 'ops: {notify: {webhook: {url: REDACTED}}}\n', 'a: [']) {
    t.same(withSecretsOf(redacted, other).missing, ['ops.notify.webhook.url']);
  }
  t.equal(withSecretsOf(FILE, present).text, FILE, 'an existing value is not replaced');
});
