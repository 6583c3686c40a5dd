import type { Fault } from '../fault.ts';
import * as clients from './clients.ts';
import * as clock from './clock.ts';
import * as configuration from './configuration.ts';
import * as database from './database.ts';
import * as descriptors from './descriptors.ts';
import * as disk from './disk.ts';
import * as files from './files.ts';
import * as flood from './flood.ts';
import * as memory from './memory.ts';
import * as network from './network.ts';
import * as packages from './package.ts';
import * as power from './power.ts';
import * as process from './process.ts';
import * as sensors from './sensors.ts';

/** Every fault; those that want the same machine are tried one after the other. */
export const FAULTS: readonly Fault[] = [
  process,
  configuration,
  database,
  files,
  disk,
  memory,
  descriptors,
  packages,
  sensors,
  clock,
  power,
  flood,
  clients,
  network,
].flatMap((file) => Object.values(file) as Fault[]);
