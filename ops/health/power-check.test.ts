import t from 'tap';
import { judgePower } from './power-check.ts';

t.test('power', async (t) => {
  t.equal(judgePower({ undervoltage: null, throttleEvents: null, grown: 0 }), null, 'the kernel does not tell');
  t.match(judgePower({ undervoltage: true, throttleEvents: null, grown: 0 }), { status: 'CRITICAL' });
  t.match(judgePower({ undervoltage: false, throttleEvents: null, grown: 0 }), { status: 'OK' });
  t.match(judgePower({ undervoltage: null, throttleEvents: 40, grown: 0 }), { status: 'OK' }, 'long ago');
  t.match(judgePower({ undervoltage: null, throttleEvents: 40, grown: 3 }), { status: 'WARNING', message: /3 times/ });
});
