/**
 * Generates the files that are derived from the schemas and the ROS definitions: the default configuration, its reference page and
 * manual page, the reference pages of the command line and the log, the OpenAPI document, the schema of the harness's reports and
 * the ROS types. Also copies the version of package.json to the other files that contain it. With --check, it only compares, and
 * fails if a file is out of date.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { changelogDay, renderConfigManual } from './deb/manual.ts';
import { harnessReportSchema } from './harness-report-schema.ts';
import { renderCommandLine } from './reference/cli.ts';
import { renderConfiguration, renderDefaultYaml } from './reference/configuration.ts';
import { renderLogEvents } from './reference/log-events.ts';
import { openApiDocument } from './reference/openapi.ts';
import { readDefinitions } from './ros/definitions.ts';
import { renderInterfaces } from './ros/render.ts';

const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };

/** A hand-written file in which the version is replaced by that of package.json. */
function withVersion(file: string, pattern: RegExp): Record<string, string> {
  const text = readFileSync(file, 'utf8');
  if (!pattern.test(text)) throw new Error(`${file} has no version`);
  return { [file]: text.replace(pattern, (_, before: string, after: string) => `${before}${version}${after}`) };
}

const files: Readonly<Record<string, string>> = {
  'config/edge_health_config.yaml': renderDefaultYaml(),
  'docs/reference/cli.md': await renderCommandLine(),
  'docs/reference/configuration.md': renderConfiguration(),
  'docs/reference/log-events.md': renderLogEvents(),
  'docs/man/edge_health_config.5': renderConfigManual(version, changelogDay()),
  'docs/harness-report.schema.json': `${JSON.stringify(harnessReportSchema(), null, 2)}\n`,
  'docs/openapi.json': `${JSON.stringify(openApiDocument(version), null, 2)}\n`,
  'src/ros/interfaces.generated.ts': renderInterfaces(readDefinitions()),
  ...withVersion('debian/changelog', /^(edge-health \()[^)]*(\))/),
  ...withVersion('docs/man/edge-health.8', /^(\.TH EDGE-HEALTH 8 \S+ "edge\\-health )[^"]*(")/),
  ...withVersion('ros2/edge_health/package.xml', /(<version>)[^<]*(<\/version>)/),
  ...withVersion('ros2/edge_health_interfaces/package.xml', /(<version>)[^<]*(<\/version>)/),
};

const read = (file: string): string => {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return ''; // A missing file counts as out of date.
  }
};
const stale = Object.entries(files).filter(([file, text]) => read(file) !== text);
if (process.argv.includes('--check')) {
  for (const [file] of stale) process.stderr.write(`${file} is out of date; run: npm run generate\n`);
  if (stale.length > 0) process.exitCode = 1;
} else {
  for (const [file, text] of stale) {
    writeFileSync(file, text);
    process.stdout.write(`${file} written\n`);
  }
}
