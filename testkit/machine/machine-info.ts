/** Description of this machine, for reports of benchmarks, soaks and fault runs. */
import { readFileSync } from 'node:fs';
import { cpus, release, totalmem, type } from 'node:os';

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGigabytes: number;
  readonly os: string;
}

function text(path: string): string {
  try {
    return readFileSync(path, 'latin1').replaceAll('\0', '').trim();
  } catch {
    return '';
  }
}

/** Not part of Machine, because it changes between runs on the same machine. */
export function thisKernel(): string {
  return `${type()} ${release()} ${process.arch}`;
}

export function thisMachine(): Machine {
  const board = text('/proc/device-tree/model');
  const model = cpus()[0]?.model.trim() ?? '';
  const name = /^PRETTY_NAME="?(.*?)"?$/m.exec(text('/etc/os-release'))?.[1];
  return {
    cpu: [model === 'unknown' ? '' : model, board].filter((word) => word !== '').join(', ') || `unknown (${process.arch})`,
    cores: cpus().length,
    memoryGigabytes: Math.round(totalmem() / 1e8) / 10,
    os: name ?? 'unknown',
  };
}
