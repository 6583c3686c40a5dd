import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { closure, type LockedPackage } from './closure.ts';
import { modulePackages } from './modules.ts';
import { BuildFailed } from './step.ts';

/** Development dependencies whose code is part of the dashboard. */
const IN_THE_DASHBOARD = ['preact', 'uplot'];
/** The runtime itself, which is not bundled. */
const RUNTIME = 'node';
const LICENCE_FILE = /^(?:licen[cs]e|copying|notice)/i;

/** File in which zx lists the packages bundled into it. */
const VENDORED = 'build/3rd-party-licenses';

interface Manifest {
  readonly license?: string;
  readonly author?: string | { readonly name?: string; readonly email?: string };
  readonly homepage?: string;
  readonly repository?: string | { readonly url?: string };
}

/** Every npm package whose code is in the Debian package, bundled or unchanged. */
export function bundledPackages(): LockedPackage[] {
  const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as { dependencies: Readonly<Record<string, string>> };
  const inPrograms = Object.keys(dependencies).filter((name) => name !== RUNTIME);
  const all = new Map([...closure([...inPrograms, ...IN_THE_DASHBOARD]), ...modulePackages()].map((one) => [one.path, one]));
  return [...all.values()].sort((a, b) => (`${a.name} ${a.version}` < `${b.name} ${b.version}` ? -1 : 1));
}

/** The licences of the Node runtime and of all bundled packages as one text. Throws BuildFailed for a package without a licence. */
export function thirdPartyLicences(node: string, nodeVersion: string): string {
  const sections = [section(`Node.js ${nodeVersion}, with what it embeds (runtime/)`, readFileSync(join(node, 'LICENSE'), 'utf8'))];
  for (const { path, name, version } of bundledPackages()) {
    const manifest = JSON.parse(readFileSync(join(path, 'package.json'), 'utf8')) as Manifest;
    const files = readdirSync(path)
      .filter((file) => LICENCE_FILE.test(file))
      .sort();
    if (existsSync(join(path, VENDORED))) files.push(VENDORED);
    const texts = files.map((file) => readFileSync(join(path, file), 'utf8'));
    const text = texts.length > 0 ? texts.join('\n\n') : standardText(name, manifest);
    const facts = [`Licence: ${manifest.license}`, `Author: ${authorOf(manifest)}`, `Source: ${sourceOf(manifest)}`];
    sections.push(section(`${name} ${version}`, `${facts.filter((fact) => !fact.endsWith(': ')).join('\n')}\n\n${text}`));
  }
  return `Licences of the programs that the package edge-health contains besides its own.\n\n${sections.join('\n')}`;
}

function section(title: string, text: string): string {
  return `${'='.repeat(80)}\n${title}\n${'='.repeat(80)}\n\n${text.replaceAll('\r\n', '\n').trim()}\n`;
}

function authorOf({ author }: Manifest): string {
  if (typeof author === 'string') return author;
  return `${author?.name ?? ''}${author?.email ? ` <${author.email}>` : ''}`;
}

function sourceOf({ homepage, repository }: Manifest): string {
  return homepage ?? (typeof repository === 'string' ? repository : (repository?.url ?? ''));
}

/** Licence texts for packages that name a licence but lack its text. */
function standardText(name: string, manifest: Manifest): string {
  if (manifest.license !== 'MIT') throw new BuildFailed(`the npm package ${name} (${manifest.license}) has no licence text`);
  return `MIT License

Copyright (c) ${authorOf(manifest) || `the authors of ${name}`}

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files
(the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify,
merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES
OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE
LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN
CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.`;
}
