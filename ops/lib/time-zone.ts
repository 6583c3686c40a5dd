import { realpathSync } from 'node:fs';
import { isTimeZone } from '../../src/config/cron.ts';

/** Of the machine; the only file that Node reads as the C library does. */
const LOCAL_TIME = '/etc/localtime';

/**
 * Replaces the environment variable TZ by the name of the zone that it means (tzset(3)). Node only knows names: of a file
 * (`:/etc/localtime`) or a rule (`CET-1CEST`) it takes the offset of this day or UTC, without daylight saving. Returns a
 * warning if there is no such name, else null. `environment` is process.env, whose changes take effect at once.
 */
export function resolveTimeZone(environment: NodeJS.ProcessEnv): string | null {
  const given = environment['TZ'];
  if (given === undefined) return null;
  const name = given.replace(/^:/, '');
  if (name === LOCAL_TIME) {
    delete environment['TZ'];
    return null;
  }
  const zone =
    name === '' ? 'UTC' : (name.startsWith('/') ? fileBehind(name) : name).replace(/^(?:.*\/zoneinfo\/)?(?:(?:posix|right)\/)?/, '');
  environment['TZ'] = isTimeZone(zone) ? zone : 'UTC';
  return isTimeZone(zone)
    ? null
    : `TZ is "${given}", which is not the name of a time zone; times are in UTC; set ops.timezone, or TZ=Europe/Berlin`;
}

function fileBehind(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
