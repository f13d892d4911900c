// Embeds src/lease/migrations/<version>/*.sql into src/lease/generated/migrations.ts, the files of a version joined in the
// order of their names. `--check` fails when the two differ and writes nothing.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';

const folder = new URL('./src/lease/migrations/', import.meta.url);
const target = new URL('./src/lease/generated/migrations.ts', import.meta.url);

const withoutComments = (sql) =>
  sql
    .split('\n')
    .map((line) => line.replace(/\s*--.*$|\s*\/\*.*?\*\//g, ''))
    .filter((line) => line.trim() !== '')
    .join('\n');

const versions = readdirSync(folder).sort((a, b) => Number(a) - Number(b));
const texts = versions.map((version) => {
  const files = readdirSync(new URL(`${version}/`, folder)).sort();
  return files.map((file) => {
    const sql = readFileSync(new URL(`${version}/${file}`, folder), 'utf8');
    if (!sql.startsWith('-- ')) throw new Error(`${version}/${file} has no header comment`);
    return withoutComments(sql);
  });
});

const literal = (sql) =>
  `\`${sql.replaceAll('\\', '\\\\').replaceAll('`', '\\`').replaceAll('${', '\\${')}\``;
const text = `// Generated from src/lease/migrations by generate.mjs. Do not edit.

/** One text for each version of the schema, the first first. */
export const migrations: readonly string[] = [
${texts.map((files) => `  ${literal(files.join('\n'))},`).join('\n')}
];
`;

if (process.argv.includes('--check')) {
  let current = '';
  try {
    current = readFileSync(target, 'utf8');
  } catch {
    // Not generated yet: reported below as a difference.
  }
  if (current !== text) {
    console.error(
      'packages/postgres/src/lease/generated/migrations.ts is out of date: run `node generate.mjs` in packages/postgres',
    );
    process.exit(1);
  }
} else {
  mkdirSync(new URL('./', target), { recursive: true });
  writeFileSync(target, text);
}
