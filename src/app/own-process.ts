import { readdir } from 'node:fs';
import type { StatusDocument } from '../http/api/schema.ts';

/** What the service itself takes of the machine. */
export async function ownProcess(): Promise<StatusDocument['process']> {
  const { system, user } = process.cpuUsage();
  return {
    resident_memory_bytes: process.memoryUsage.rss(),
    cpu_seconds: (user + system) / 1e6,
    open_files: await openFiles(),
  };
}

function openFiles(): Promise<number | null> {
  return new Promise((resolve) => {
    // One of them is that of the listing.
    readdir('/proc/self/fd', (error, names) => resolve(error ? null : names.length - 1));
  });
}
