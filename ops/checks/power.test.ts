import t from 'tap';
import { evaluatePower } from './power.ts';

t.test('judges undervoltage and throttling', async (t) => {
  t.equal(evaluatePower({ undervoltage: null, throttleEvents: null, throttled: 0 }), null, 'the kernel reports neither');
  t.match(evaluatePower({ undervoltage: true, throttleEvents: null, throttled: 0 }), { status: 'CRITICAL' });
  t.match(evaluatePower({ undervoltage: false, throttleEvents: null, throttled: 0 }), { status: 'OK' });
  t.match(evaluatePower({ undervoltage: null, throttleEvents: 40, throttled: 0 }), { status: 'OK' }, 'long ago');
  t.match(evaluatePower({ undervoltage: null, throttleEvents: 40, throttled: 3 }), { status: 'WARNING', message: /3 times/ });
});
