import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { buildUnavailable } from '../../../testkit/dds/native.ts';
import { type Host, Network, networkUnavailable } from '../../../testkit/network/network.ts';
import { ROOT } from '../../../testkit/service/service.ts';

t.setTimeout(600_000);

/** Tests the networks of the tests: hosts, segments, lossy links, and that nothing of them remains. */

function network(t: Test): Network {
  const made = new Network();
  t.teardown(() => made.dispose());
  return made;
}

/** Prints the numbers of the datagrams that arrive at `address`, in their order, until one of them is the last. */
const RECEIVER = `
  const socket = require('node:dgram').createSocket({ type: 'udp4', recvBufferSize: 1 << 22 });
  const seen = [];
  socket.on('message', (message) => {
    const number = message.readUInt32BE(0);
    if (message.length < 4 || message.subarray(4).some((byte) => byte !== 0x5a)) throw new Error('a datagram was changed');
    if (number === 0xffffffff) { console.log(JSON.stringify(seen)); process.exit(); }
    seen.push(number);
  });
  socket.bind(7000, process.argv[1], () => console.log('bound'));
`;

/** Sends numbered datagrams of the given size, several per millisecond, and last marks until it is ended. */
const SENDER = `
  const [address, count, bytes] = process.argv.slice(1);
  const socket = require('node:dgram').createSocket('udp4');
  const datagram = (number) => { const made = Buffer.alloc(Number(bytes), 0x5a); made.writeUInt32BE(number); return made; };
  let number = 0;
  const timer = setInterval(() => {
    for (let i = 0; i < 4 && number < count; i++) socket.send(datagram(number++), 7000, address);
    if (number < count) return;
    clearInterval(timer);
    setInterval(() => socket.send(datagram(0xffffffff), 7000, address), 100);
  }, 1);
`;

/** Sends `count` datagrams from one host to the address of another; returns the numbers that arrived, in their order. */
async function datagrams(from: Host, to: Host, address: string, count: number, bytes: number): Promise<number[]> {
  const receiver = to.spawn(process.execPath, ['-e', RECEIVER, address], { stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  receiver.stdout?.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  if (receiver.stdout) await once(receiver.stdout, 'data');
  const sender = from.spawn(process.execPath, ['-e', SENDER, address, String(count), String(bytes)], { stdio: 'inherit' });
  const [code] = await once(receiver, 'close');
  sender.kill('SIGKILL');
  await once(sender, 'close');
  if (code !== 0) throw new Error(`the receiver ended with ${code}`);
  return JSON.parse(output.split('\n')[1] as string) as number[];
}

t.test('networks', { skip: networkUnavailable() }, async (t) => {
  t.test('a host without a network has multicast on its loopback interface', async (t) => {
    const host = network(t).host();
    t.match(host.ip('link', 'show', 'lo'), /MULTICAST,UP/);
    t.match(host.ip('route', 'get', '239.255.0.1'), /dev lo/);
    t.same(host.addresses, ['127.0.0.1']);
  });

  t.test('hosts on a segment reach each other; addresses change, links go down and up, interfaces come and go', async (t) => {
    const made = network(t);
    const [office, factory] = [made.segment(), made.segment()];
    const [brain, arm] = [made.host(), made.host()];
    const first = office.attach(brain);
    const second = office.attach(arm);
    t.same([first.address, second.address], ['10.77.1.1', '10.77.1.2']);
    t.equal((await datagrams(brain, arm, second.address, 20, 3000)).length, 20, 'also those that IP has to cut');
    t.match(brain.ip('route', 'get', '239.255.0.1'), /dev eth0/);
    t.notMatch(brain.ip('link', 'show', 'lo'), /MULTICAST/);

    second.setAddress('10.77.1.99');
    t.same(arm.addresses, ['10.77.1.99']);
    t.equal((await datagrams(brain, arm, '10.77.1.99', 20, 100)).length, 20);
    t.match(arm.ip('route', 'get', '239.255.0.1'), /src 10\.77\.1\.99/);

    const third = factory.attach(arm);
    t.same(arm.addresses, ['10.77.1.99', '10.77.2.1']);
    second.down();
    t.match(arm.ip('route', 'get', '239.255.0.1'), /dev eth1/);
    t.throws(() => brain.ip('route', 'get', '10.77.2.1'), /unreachable/i, 'the segments are not joined');
    second.up();
    third.remove();
    t.same(arm.addresses, ['10.77.1.99']);
    t.notMatch(arm.ip('link', 'show'), /eth1/);
    t.equal((await datagrams(brain, arm, '10.77.1.99', 20, 100)).length, 20);
  });

  t.test('a lossy link loses, duplicates and reorders about the requested share', { skip: buildUnavailable('lossy-link') }, async (t) => {
    const made = network(t);
    const segment = made.segment();
    const [sender, ...receivers] = [made.host(), made.host(), made.host()];
    segment.attach(sender as Host);
    const counts = 2000;
    const arrived: number[][] = [];
    for (const receiver of receivers) {
      const { address, link } = await segment.attachLossy(receiver, { seed: 7 });
      // Datagrams that wait for the first ARP reply may overtake each other.
      await datagrams(sender as Host, receiver, address, 1, 100);
      t.same(await datagrams(sender as Host, receiver, address, 200, 1400), [...Array(200).keys()], 'at first it is a good one');
      await link.set({ lossPercent: 10, duplicatePercent: 5, reorderPercent: 5, holdMs: 15 });
      const before = await link.state();
      const numbers = await datagrams(sender as Host, receiver, address, counts, 200);
      const { back } = await link.state();
      const distinct = new Set(numbers).size;
      const overtaken = numbers.filter((number, i) => number < (numbers[i - 1] ?? 0)).length;
      // Four standard deviations to either side of the binomial mean.
      const near = (found: number, share: number): boolean =>
        Math.abs(found - counts * share) < 4 * Math.sqrt(counts * share * (1 - share));
      t.ok(near(counts - distinct, 0.1), `${counts - distinct} of ${counts} lost`);
      t.ok(near(numbers.length - distinct, 0.9 * 0.05), `${numbers.length - distinct} duplicated`);
      t.ok(overtaken > 0.02 * counts, `${overtaken} overtaken`);
      t.ok(back.lost - before.back.lost >= counts - distinct, 'the counters tell the same');
      t.equal(back.missed + back.failed, 0);
      arrived.push([...new Set(numbers)].sort((a, b) => a - b));

      await link.pause();
      const paused = (await link.state()).back.paused;
      const silent = datagrams(sender as Host, receiver, address, 100, 100);
      while ((await link.state()).back.paused < paused + 100) await new Promise((later) => setTimeout(later, 50));
      await link.set({ lossPercent: 0 });
      await link.resume();
      t.same(await silent, [], 'nothing passes in a pause');
    }
    t.same(arrived[0], arrived[1], 'the same seed, the same fate');
  });

  t.test('networks vanish with the test that created them, however it ends', async (t) => {
    const module = join(ROOT, 'testkit/network/network.ts');
    const program = `
      const { Network } = await import(${JSON.stringify(module)});
      const network = new Network();
      const host = network.host();
      network.segment().attach(host);
      const child = host.spawn('sleep', ['300']);
      console.log(host.name.split('-').slice(0, 2).join('-'), child.pid);
      if (process.argv[1] === 'throw') throw new Error('as a test may');
      setInterval(() => {}, 1000);
    `;
    const start = async (
      how: string,
    ): Promise<{ prefix: string; sleeper: number; end: (signal: NodeJS.Signals | null) => Promise<void> }> => {
      const child = spawn(process.execPath, ['--input-type=module', '-e', program, how], { stdio: ['ignore', 'pipe', 'ignore'] });
      const closed = once(child, 'close');
      const [line] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string];
      const [prefix = '', pid = ''] = line.trim().split(' ');
      const end = async (signal: NodeJS.Signals | null): Promise<void> => {
        if (signal) child.kill(signal);
        await closed;
      };
      return { prefix, sleeper: Number(pid), end };
    };
    const left = (prefix: string): string[] => readdirSync('/run/netns').filter((name) => name.startsWith(`${prefix}-`));
    const gone = async (pid: number): Promise<boolean> => {
      for (let tries = 0; tries < 1200; tries += 1) {
        try {
          process.kill(pid, 0);
        } catch {
          return true;
        }
        await new Promise((later) => setTimeout(later, 50));
      }
      return false;
    };

    const thrown = await start('throw');
    await thrown.end(null);
    t.same(left(thrown.prefix), []);
    const terminated = await start('wait');
    t.equal(left(terminated.prefix).length, 2);
    await terminated.end('SIGTERM');
    t.same(left(terminated.prefix), []);
    t.ok(await gone(terminated.sleeper), 'and what ran in them');
    const killed = await start('wait');
    await killed.end('SIGKILL');
    t.equal(left(killed.prefix).length, 2, 'SIGKILL leaves them');
    const next = await start('wait');
    await next.end('SIGTERM');
    t.same(left(killed.prefix), [], 'for the next one to remove');
    t.ok(await gone(killed.sleeper));
  });
});
