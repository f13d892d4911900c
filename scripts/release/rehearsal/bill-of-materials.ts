import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { must } from '../../checks/command.ts';
import { publishedPackages } from '../../checks/workspace.ts';
import { hostPath } from '../../launcher/environment.mjs';

/** Licences that ask of users no more than to be named. Each id is one of SPDX. */
const ALLOWED = [
  '0BSD',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'BlueOak-1.0.0',
  'ISC',
  'MIT',
  'PSF-2.0',
  'Unlicense',
];

interface Component {
  readonly name: string;
  readonly group?: string;
  readonly licenses?: readonly {
    readonly license?: { readonly id?: string; readonly name?: string };
    readonly expression?: string;
  }[];
}

/**
 * The software bill of materials (CycloneDX) of a project that installed all packages with the clients that they ask for, written to
 * `file`; every package of it must have an allowed licence.
 */
export async function billOfMaterials(folder: string, file: string): Promise<string> {
  const options = { cwd: folder, env: { ...process.env, PATH: hostPath() } };
  const text = await must('npm', ['sbom', '--sbom-format=cyclonedx', '--loglevel=error'], options);
  writeFileSync(file, text);
  const { components } = JSON.parse(text) as { readonly components: readonly Component[] };
  const names = components.map(nameOf);
  const absent = publishedPackages.filter(({ manifest }) => !names.includes(manifest.name));
  const problems = [
    ...absent.map(({ manifest }) => `${manifest.name} is not in the bill of materials`),
    ...components.flatMap((component) => {
      const licence = licenceOf(component, folder);
      return isAllowed(licence) ? [] : [`${nameOf(component)} has the licence ${licence}`];
    }),
  ];
  if (problems.length > 0) throw new Error(problems.join('\n'));
  return `${components.length} components, each with an allowed licence`;
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
  const { license } = JSON.parse(readFileSync(manifest, 'utf8')) as { readonly license?: unknown };
  return typeof license === 'string' ? license : JSON.stringify(license ?? 'unknown');
}

/** An expression of SPDX: `(MIT OR GPL-3.0)` leaves the choice, `MIT AND ISC` does not. */
export function isAllowed(expression: string): boolean {
  const alternatives = expression.replaceAll(/[()]/g, '').split(/ OR /i);
  return alternatives.some((one) => one.split(/ AND /i).every((licence) => ALLOWED.includes(licence.trim())));
}
