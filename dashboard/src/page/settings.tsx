import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { messages } from '../messages/messages.ts';

const SCHEMES = ['auto', 'light', 'dark', 'contrast'] as const;
type Scheme = (typeof SCHEMES)[number];

const KEY = 'edge-health-scheme';

function readScheme(): Scheme {
  try {
    return SCHEMES.find((scheme) => scheme === localStorage.getItem(KEY)) ?? 'auto';
  } catch {
    return 'auto'; // The browser forbids storage.
  }
}

const moreContrast = (): boolean => matchMedia('(prefers-contrast: more)').matches;

/** Applies a colour scheme, by default the stored one. The style sheet itself follows light and dark of the system. */
export function applyScheme(scheme: Scheme = readScheme()): void {
  const { dataset } = document.documentElement;
  const applied = scheme === 'auto' && moreContrast() ? 'contrast' : scheme;
  if (applied === 'auto') delete dataset['scheme'];
  else dataset['scheme'] = applied;
  dispatchEvent(new Event('schemechange'));
}

/** The switch for the colour scheme. */
export function Settings(): VNode {
  const [current, setCurrent] = useState(readScheme);
  const { appearance, schemes } = messages.shell;
  const select = (event: Event): void => {
    const scheme = (event.currentTarget as HTMLSelectElement).value as Scheme;
    try {
      localStorage.setItem(KEY, scheme);
    } catch {}
    setCurrent(scheme);
    applyScheme(scheme);
  };
  return (
    <label class="scheme">
      <span class="hidden">{appearance}</span>
      <select value={current} onChange={select}>
        {SCHEMES.map((scheme) => (
          <option key={scheme} value={scheme}>
            {schemes[scheme]}
          </option>
        ))}
      </select>
    </label>
  );
}
