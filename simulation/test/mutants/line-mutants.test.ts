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
  const sound = await scriptsOf('');
  for (const { change, says } of ofScripts) {
    const text = readFileSync(join(packages, loadedFile(change)), 'utf8');
    const scripts = await scriptsOf(stripTypeScriptTypes(changed(text, [change])));
    for (const [name, { source }] of Object.entries(scripts)) {
      if (source === sound[name]?.source) continue;
      expect(() => lua.compile(LuaScripts.sha1(source), source), says).not.toThrow();
    }
  }
});

/** The scripts of a module; of the generated one as it is where there is no code. */
async function scriptsOf(code: string): Promise<Readonly<Record<string, { readonly source: string }>>> {
  const generated = join(packages, 'redis-protocol/src/generated/scripts.ts');
  const text = code === '' ? stripTypeScriptTypes(readFileSync(generated, 'utf8')) : code;
  const module: unknown = await import(`data:text/javascript,${encodeURIComponent(text)}`);
  return (module as { readonly scripts: Readonly<Record<string, { readonly source: string }>> }).scripts;
}
