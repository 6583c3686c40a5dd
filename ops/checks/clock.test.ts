import t from 'tap';
import { evaluateClock, parseChrony, parseTimedatectl } from './clock.ts';

t.test('parses the output of timedatectl and chrony', async (t) => {
  t.same(parseTimedatectl('NTP=yes\nNTPSynchronized=no\n'), { enabled: true, synchronised: false });
  t.same(parseTimedatectl('CanNTP=no\nNTP=no\nNTPSynchronized=yes\n'), { enabled: false, synchronised: true });
  t.same(parseTimedatectl(''), { enabled: null, synchronised: null });
  const tracking = (leap: string): string =>
    `C0A80001,192.168.0.1,3,1772600767.1,0.000012,-0.00001,0.00002,-3.1,0.001,0.05,0.01,0.002,64.2,${leap}\n`;
  t.equal(parseChrony(tracking('Normal')), true);
  t.equal(parseChrony(tracking('Insert second')), true);
  t.equal(parseChrony(tracking('Not synchronised')), false);
  t.equal(parseChrony('506 Cannot talk to daemon\n'), null);
});

t.test('judges whether the clock is synchronised', async (t) => {
  const facts = { synchronised: true, enabled: true, source: 'timedatectl', inContainer: false, uptimeSeconds: 86_400 };
  t.match(evaluateClock(facts), { status: 'OK', isNote: false });
  t.match(evaluateClock({ ...facts, synchronised: false }), { status: 'WARNING', remedy: /timesync-status/ });
  t.match(evaluateClock({ ...facts, synchronised: false, enabled: false }), { status: 'WARNING', remedy: /timedatectl set-ntp true/ });
  t.match(evaluateClock({ ...facts, synchronised: false, uptimeSeconds: 60 }), { status: 'OK', isNote: true });
  t.match(evaluateClock({ ...facts, synchronised: false, inContainer: true }), { status: 'OK', isNote: true });
  t.match(evaluateClock({ ...facts, synchronised: null }), { status: 'OK', isNote: true });
});
