import t from 'tap';
import { evaluatePower, type PowerFacts } from './power.ts';

const UNKNOWN: PowerFacts = { undervoltage: null, undervoltageEvents: null, undervoltages: 0, throttleEvents: null, throttled: 0 };

t.test('judges undervoltage and throttling', async (t) => {
  t.equal(evaluatePower(UNKNOWN), null, 'the kernel reports neither');
  t.match(evaluatePower({ ...UNKNOWN, undervoltage: true, undervoltageEvents: 1 }), { status: 'CRITICAL' });
  t.match(evaluatePower({ ...UNKNOWN, undervoltage: false, undervoltageEvents: 0 }), { status: 'OK' });
  const between = { ...UNKNOWN, undervoltage: false, undervoltageEvents: 5 };
  t.match(evaluatePower({ ...between, undervoltages: 2 }), { status: 'WARNING', message: /2 times/ }, 'between two checks');
  t.match(evaluatePower(between), { status: 'OK', message: /5 times/ }, 'before the last check');
  t.match(evaluatePower({ ...UNKNOWN, throttleEvents: 40 }), { status: 'OK' }, 'long ago');
  t.match(evaluatePower({ ...UNKNOWN, throttleEvents: 40, throttled: 3 }), { status: 'WARNING', message: /3 times/ });
});
