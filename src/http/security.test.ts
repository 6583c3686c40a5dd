import type { IncomingMessage } from 'node:http';
import t from 'tap';
import { HostCheck } from './security.ts';

function request(hosts: readonly string[], url = '/', httpVersion = '1.1'): IncomingMessage {
  const rawHeaders = ['Accept', '*/*', ...hosts.flatMap((host) => ['Host', host])];
  return { headers: { host: hosts[0] }, rawHeaders, url, httpVersion } as unknown as IncomingMessage;
}

const check = new HostCheck(() => ['Robot-7', 'robot-7.local'], ['Arm.lab.example', 'proxy.example.']);
const codeOf = (...asked: Parameters<typeof request>): string | null => check.problemOf(request(...asked))?.code ?? null;

t.test('IP addresses, localhost, names of the machine and configured names are allowed, with any port', async (t) => {
  for (const host of [
    ...['127.0.0.1', '192.0.2.17:5000', '[::1]', '[::1]:5000', '[2001:db8::17]:80', '[fe80::1%eth0]:5000', '[::ffff:192.0.2.1]'],
    ...['localhost', 'localhost:5000', 'LOCALHOST.', 'dashboard.localhost:8080'],
    ...['robot-7', 'ROBOT-7.LOCAL:5000', 'robot-7.'],
    ...['arm.lab.example:443', 'proxy.example'],
  ])
    t.equal(codeOf([host]), null, host);
});

t.test('every other name is refused, and the response states the remedy', async (t) => {
  for (const host of [
    ...['evil.example', 'evil.example:5000', 'localhost.evil.example', 'notlocalhost', 'robot-7.evil.example', 'robot-70', 'lab.example'],
    ...['127.0.0.1.evil.example', '127.0.0.1@evil.example', '[::1].evil.example', '[evil.example]', '[]', '::1', '2130706433', '0x7f.1'],
    ...[
      '',
      ':5000',
      ' localhost',
      'localhost evil.example',
      'localhost,evil.example',
      '127.0.0.1:5000:80',
      'local\thost',
      '.',
      '.localhost',
    ],
  ])
    t.equal(codeOf([host]), 'host_not_allowed', JSON.stringify(host));
  const problem = check.problemOf(request(['evil.example'.repeat(1000)]));
  t.match(problem?.message, /"evil\.example.*rest\.allowed_hosts/);
  t.ok((problem?.message.length ?? 0) < 250);
});

t.test('the host of an absolute URL is checked like the header', async (t) => {
  t.equal(codeOf(['localhost'], 'http://127.0.0.1:5000/health'), null);
  t.equal(codeOf(['localhost'], 'http://evil.example/health'), 'host_not_allowed');
  t.equal(codeOf(['evil.example'], 'http://localhost/health'), 'host_not_allowed');
  t.equal(codeOf(['localhost'], 'HTTPS://localhost@evil.example?x'), 'host_not_allowed');
  t.equal(codeOf(['localhost'], '/http://evil.example/'), null, 'a URL within the path is not checked');
});

t.test('exactly one Host header is required, except with HTTP/1.0', async (t) => {
  t.equal(codeOf([]), 'malformed_request');
  t.equal(codeOf(['localhost', 'localhost']), 'malformed_request');
  t.equal(codeOf(['localhost', 'evil.example']), 'malformed_request');
  t.equal(codeOf([], '/', '1.0'), null);
  t.equal(codeOf(['evil.example'], '/', '1.0'), 'host_not_allowed');
});

t.test('the allowed names can be changed, and a new name of the machine is allowed at once', async (t) => {
  let name = 'old';
  const own = new HostCheck(() => [name], ['a.example']);
  const allows = (host: string): boolean => own.problemOf(request([host])) === null;
  t.ok(allows('old') && allows('a.example') && !allows('new') && !allows('b.example'));
  name = 'new';
  own.setAllowed(['b.example']);
  t.ok(!allows('old') && !allows('a.example') && allows('new') && allows('b.example'));
});
