import { readPowerState } from '../collect/power.ts';
import { chooseSensor, findSensors } from '../collect/sensors.ts';
import { printJson, printLines } from '../core/platform/output.ts';
import { type Command, EXIT } from './command.ts';

export const sensors: Command = {
  summary: 'Show the temperature sensors, the selected one and the reason',
  usage: 'sensors [--sensor NAME] [--sys DIR] [--json]',
  help: `  --sensor NAME   as temperature.sensor: a thermal zone's type, or hwmon-name/label,
                  each with @ADDRESS if several sensors have this name
  --sys DIR       read DIR instead of /sys (a recorded tree)
  --json          print the result as JSON

Exit codes: 0 a sensor was selected, 1 none, 64 wrong usage.`,
  options: { sensor: { type: 'string' }, sys: { type: 'string' }, json: { type: 'boolean' } },
  positionals: 0,
  run: async ({ options }) => {
    const sysRoot = (options['sys'] as string | undefined) ?? '/sys';
    const { chosen, reason, rejected } = chooseSensor(await findSensors(sysRoot), (options['sensor'] as string | undefined) ?? null);
    const power = await readPowerState(sysRoot);
    if (options['json']) {
      printJson({ chosen, reason, rejected, power: { undervoltage: power.undervoltage, throttle_events: power.throttle_events } }, 2);
      return chosen ? EXIT.ok : EXIT.failure;
    }
    const lines = chosen
      ? [
          `${chosen.id}   ${chosen.celsius === null ? 'no value now' : `${chosen.celsius.toFixed(1)} °C`}`,
          `  ${chosen.path}`,
          `  chosen: ${reason}`,
        ]
      : [`no sensor chosen: ${reason}`];
    if (rejected.length > 0) lines.push('', 'not chosen:');
    const width = Math.max(0, ...rejected.map(({ id }) => id.length));
    for (const { id, celsius, reason: why } of rejected) {
      lines.push(`  ${id.padEnd(width)}  ${(celsius === null ? '-' : `${celsius.toFixed(1)} °C`).padStart(9)}  ${why}`);
    }
    if (power.undervoltage !== null) lines.push('', `undervoltage: ${power.undervoltage ? 'yes: the supply is too weak' : 'no'}`);
    if (power.throttle_events !== null) lines.push('', `throttled because of temperature since boot: ${power.throttle_events} times`);
    printLines(lines);
    return chosen ? EXIT.ok : EXIT.failure;
  },
};
