import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { publishedPackages } from '../../checks/workspace.ts';
import { hostPath } from '../../launcher/environment.mjs';
import { must } from './release-copy.ts';

/** Licences that ask of users no more than to be named. Each id is one of SPDX. */
const ALLOWED = new Set([
  '0BSD',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'BlueOak-1.0.0',
  'ISC',
  'MIT',
]);

interface Component {
  readonly name: string;
  readonly version: string;
  readonly group?: string;
  readonly licenses?: readonly {
    readonly license?: { readonly id?: string; readonly name?: string };
    readonly expression?: string;
  }[];
}

export interface Bill {
  readonly components: number;
  readonly licences: string;
  readonly problems: readonly string[];
}

/**
 * The software bill of materials (CycloneDX) of a project that installed all packages with the clients that they ask for, written to
 * `file`; every package of it must have an allowed licence.
 */
export async function billOfMaterials(folder: string, file: string): Promise<Bill> {
  const env = { ...process.env, PATH: hostPath() };
  const text = await must('npm', ['sbom', '--sbom-format=cyclonedx', '--loglevel=error'], folder, env);
  writeFileSync(file, text);
  const { components } = JSON.parse(text) as { components: readonly Component[] };
  const names = new Set(components.map(nameOf));
  const problems = publishedPackages
    .filter(({ manifest }) => !names.has(manifest.name))
    .map(({ manifest }) => `${manifest.name} is not in the bill of materials`);
  const counts = new Map<string, number>();
  for (const component of components) {
    const licence = licenceOf(component, folder);
    counts.set(licence, (counts.get(licence) ?? 0) + 1);
    if (!isAllowed(licence))
      problems.push(`${nameOf(component)}@${component.version} has the licence ${licence}`);
  }
  const licences = [...counts]
    .sort(([, a], [, b]) => b - a)
    .map(([licence, count]) => `${count} ${licence}`)
    .join(', ');
  return { components: components.length, licences, problems };
}

function nameOf({ group, name }: Component): string {
  return group ? `${group}/${name}` : name;
}

/** As npm says it, else as the package.json does. */
function licenceOf(component: Component, folder: string): string {
  const [first] = component.licenses ?? [];
  const said = first?.license?.id ?? first?.expression ?? first?.license?.name;
  if (said) return said;
  const manifest = join(folder, 'node_modules', nameOf(component), 'package.json');
  const { license } = JSON.parse(readFileSync(manifest, 'utf8')) as { license?: unknown };
  return typeof license === 'string' ? license : JSON.stringify(license ?? 'unknown');
}

/** An expression of SPDX: `(MIT OR GPL-3.0)` leaves the choice, `MIT AND ISC` does not. */
export function isAllowed(expression: string): boolean {
  const alternatives = expression.replaceAll(/[()]/g, '').split(/ OR /i);
  return alternatives.some((alternative) =>
    alternative.split(/ AND /i).every((licence) => ALLOWED.has(licence.trim())),
  );
}
