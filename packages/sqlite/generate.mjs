// Embeds src/sql/*.sql into src/generated/sql.ts. `--check` fails when the two differ and writes nothing.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';

const folder = new URL('./src/sql/', import.meta.url);
const target = new URL('./src/generated/sql.ts', import.meta.url);

const camelCase = (name) => name.replace(/-(\w)/g, (_, letter) => letter.toUpperCase());
const withoutComments = (sql) =>
  sql
    .replace(/--[^\n]*/g, '')
    .replace(/\s+/g, ' ')
    .trim();

const constants = readdirSync(folder)
  .filter((name) => name.endsWith('.sql'))
  .sort()
  .map((name) => {
    const sql = readFileSync(new URL(name, folder), 'utf8');
    if (!sql.startsWith('-- ')) throw new Error(`${name} has no header comment`);
    return `  ${camelCase(name.slice(0, -'.sql'.length))}: ${JSON.stringify(withoutComments(sql)).replace(/^"(.*)"$/, (_, body) => `'${body.replaceAll("'", "\\'").replaceAll('\\"', '"')}'`)},`;
  });

const text = `// Generated from src/sql/*.sql by generate.mjs. Do not edit.\n\nexport const sql = {\n${constants.join('\n')}\n} as const;\n`;

if (process.argv.includes('--check')) {
  let current = '';
  try {
    current = readFileSync(target, 'utf8');
  } catch {
    // Not generated yet: reported below as a difference.
  }
  if (current !== text) {
    console.error(
      'packages/sqlite/src/generated/sql.ts is out of date: run `node generate.mjs` in packages/sqlite',
    );
    process.exit(1);
  }
} else {
  writeFileSync(target, text);
}
