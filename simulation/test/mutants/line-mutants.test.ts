import { readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { lineMutants } from '../../src/mutants/run-mutants.ts';
import { LuaScripts } from '../../src/redis/lua-scripts.ts';
import { changed, loadedFile } from '../../src/process/source-change.ts';

const packages = join(import.meta.dirname, '../../../packages');

test.each(lineMutants.map((mutant) => [`${mutant.change.file}: ${mutant.says}`, mutant] as const))(
  'the line is there: %s',
  (_, { change }) => {
    const text = readFileSync(join(packages, loadedFile(change)), 'utf8');
    expect(changed(text, [change])).not.toBe(text);
  },
);

const ofScripts = lineMutants.filter(({ change }) => change.file.endsWith('.lua'));

test('what a line of a script becomes is a program', async () => {
  const lua = await LuaScripts.load();
  const generated = readFileSync(join(packages, 'redis-protocol/src/generated/scripts.ts'), 'utf8');
  const sound = await scriptsOf(generated);
  for (const { change, says } of ofScripts) {
    for (const [name, { source }] of Object.entries(await scriptsOf(changed(generated, [change])))) {
      if (source === sound[name]?.source) continue;
      expect(() => lua.compile(LuaScripts.sha1(source), source), says).not.toThrow();
    }
  }
});

/** The scripts of a module like the generated one. */
async function scriptsOf(text: string): Promise<Readonly<Record<string, { readonly source: string }>>> {
  const code = stripTypeScriptTypes(text);
  const module: unknown = await import(`data:text/javascript,${encodeURIComponent(code)}`);
  return (module as { readonly scripts: Readonly<Record<string, { readonly source: string }>> }).scripts;
}
