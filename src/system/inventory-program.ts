import { readFile } from 'node:fs/promises';
import { cpu, mem, osInfo, system } from 'systeminformation';
import type { Inventory } from './inventory.ts';

/** The model of the machine from the device tree, otherwise from the firmware, which has placeholders on many machines. */
async function model(manufacturer: string, name: string): Promise<string> {
  const board = await readFile('/proc/device-tree/model', 'utf8').catch(() => '');
  if (board !== '') return board.replaceAll('\0', '').trim();
  const filler = /^(default string|to be filled.*|system manufacturer|system product name|not specified|none|-|)$/i;
  const words = [manufacturer, name].map((word) => word.trim()).filter((word) => !filler.test(word));
  return words.join(' ') || 'unknown';
}

/** Prints the inventory of this machine as one JSON document. */
async function main(): Promise<void> {
  const [hardware, os, processor, memory] = await Promise.all([system(), osInfo(), cpu(), mem()]);
  const inventory: Inventory = {
    hostname: os.hostname,
    model: await model(hardware.manufacturer, hardware.model),
    os: `${os.distro} ${os.release}`.trim(),
    kernel: os.kernel,
    architecture: process.arch,
    cpu: `${processor.manufacturer} ${processor.brand}`.trim(),
    cores: processor.cores,
    memory_bytes: memory.total,
    virtual: hardware.virtual,
  };
  process.stdout.write(`${JSON.stringify(inventory)}\n`);
}

main().catch((error: Error) => {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
});
