import { runCommand } from './command.ts';
import type { Step } from './step.ts';
import { conformanceOf, plainSuiteNames } from './steps/tests.ts';

/** The workspace packages, by their short names, that differ from `main`, commits and files alike, and those that depend on them. */
export async function changedPackages(): Promise<ReadonlySet<string>> {
  const env = { ...process.env, TURBO_SCM_BASE: 'main' };
  const { ok, stdout, output } = await runCommand('turbo', ['ls', '--affected', '--output=json'], { env });
  if (!ok) throw new Error(`turbo could not say what differs from main:\n${output}`);
  const { packages } = JSON.parse(stdout.slice(stdout.indexOf('{'))) as {
    readonly packages: { readonly items: readonly { readonly name: string }[] };
  };
  return new Set(packages.items.map(({ name }) => name.replace(/^@locks\//, '')));
}

/** Of these steps those that concern one of the packages, with the conformance suite on the stores of these packages alone. */
export function stepsOf(changed: ReadonlySet<string>, steps: readonly Step[]): readonly Step[] {
  return steps.flatMap((step) => {
    if (step.name === 'contract:conformance') {
      // `postgres-lease` is of the package `postgres`.
      const names = plainSuiteNames.filter((name) =>
        [...changed].some((one) => `${name}-`.startsWith(`${one}-`)),
      );
      return names.length === 0 ? [] : [conformanceOf(names)];
    }
    return step.concerns?.some((one) => changed.has(one)) === false ? [] : [step];
  });
}
