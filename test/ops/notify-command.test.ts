import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { commandChannel } from '../../ops/notify/channels/command.ts';
import { messageOf } from '../../ops/notify/message.ts';
import { facts, line } from '../../ops/notify/testing/lines.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { until } from '../../testkit/wait.ts';

const never = new AbortController().signal;

/** Empty if there is no such file. */
function contentOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

const nasty = '$(touch HACKED) `id` "quoted" \'single\' \\ ü';
const message = messageOf({ ...facts, host: nasty }, [line('raised', 'CRITICAL', nasty)], []);

function program(t: Test, script: string, name = 'notify it'): string {
  const path = temporaryFolder(t);
  const file = join(path, name);
  writeFileSync(file, `#!/bin/sh\ncd '${path}'\n${script}\n`);
  chmodSync(file, 0o755);
  return file;
}

t.test('a program gets the document on standard input and the main values in its environment, without a shell', async (t) => {
  const file = program(t, 'cat >input; env >environment; printf "%s" "$*" >arguments', "it's $HOME; notify");
  t.same(await commandChannel(file, process.env).send(message, never), { kind: 'delivered', detail: 'exit status 0' });
  const beside = (name: string): string => readFileSync(join(file, '..', name), 'utf8');
  t.same(JSON.parse(beside('input')), JSON.parse(JSON.stringify(message)));
  t.equal(beside('arguments'), '');
  for (const expected of [
    'EDGE_HEALTH_STATUS=CRITICAL',
    `EDGE_HEALTH_HOST=${nasty}`,
    'EDGE_HEALTH_ID=robot-7-abc-1',
    'EDGE_HEALTH_KIND=update',
  ])
    t.ok(beside('environment').split('\n').includes(expected), expected);
  t.notOk(existsSync(join(file, '..', 'HACKED')));
});

t.test('any other exit status is retried, and reported with the last line of output', async (t) => {
  const words = program(t, 'echo first; echo "no modem" >&2; exit 7');
  t.same(await commandChannel(words, process.env).send(message, never), {
    kind: 'retry',
    detail: 'exit status 7; last line of output: no modem',
  });
  const missing = await commandChannel('/nowhere/notify', process.env).send(message, never);
  t.match(missing, { kind: 'retry', detail: /no such program: correct ops\.notify\.command/ });
  const plain = program(t, 'true');
  chmodSync(plain, 0o644);
  t.match(await commandChannel(plain, process.env).send(message, never), { kind: 'retry', detail: /chmod \+x/ });
  t.match(await commandChannel('notify', process.env).send(message, never), { kind: 'retry', detail: /absolute path/ });
});

t.test('a program that does not read its input, and one that writes without end, are handled', async (t) => {
  const huge = { ...message, notes: ['x'.repeat(1_000_000)] };
  const deaf = program(t, 'exec <&-; exit 0');
  t.match(await commandChannel(deaf, process.env).send(huge, never), { kind: 'delivered' });
  const loud = program(t, 'cat >/dev/null; head -c 5000000 /dev/zero | tr "\\0" x; echo; echo done; exit 1');
  t.match(await commandChannel(loud, process.env).send(message, never), {
    kind: 'retry',
    detail: 'exit status 1; last line of output: done',
  });
});

t.test('a program that hangs is killed with everything that it started', async (t) => {
  const file = program(t, 'sleep 300 & echo $! >pid; wait');
  t.match(await commandChannel(file, process.env, 0.2).send(message, never), {
    kind: 'retry',
    detail: 'did not end within 0.2 s and was killed',
  });
  rmSync(join(file, '../pid'), { force: true });
  const ending = new AbortController();
  const sending = commandChannel(file, process.env, 600).send(message, ending.signal);
  const pid = await until('its child runs', () => /^\d+\n/.exec(contentOf(join(file, '../pid')))?.[0].trim());
  ending.abort();
  t.match(await sending, { kind: 'retry', detail: 'ended with the scheduler' });
  await until('its child is gone', () => !/State:\s+[^ZX]/.test(contentOf(`/proc/${pid}/status`)));
});
