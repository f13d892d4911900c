// Before a release: repository, homepage and bugs stand in the root's package.json, for all packages, and are written from
// there into each. Refuses while they are unset.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** @param {string} root */
export function writeLinks(root) {
  const { repository, homepage, bugs } = read(join(root, 'package.json'));
  const unset = Object.entries({ repository, homepage, bugs }).flatMap(([name, value]) =>
    value ? [] : name,
  );
  if (unset.length > 0)
    throw new Error(`package.json of the root lacks ${unset.join(', ')}: a release needs them.`);
  const url = typeof repository === 'string' ? repository : repository.url;
  for (const name of readdirSync(join(root, 'packages'))) {
    const file = join(root, 'packages', name, 'package.json');
    const links = { repository: { type: 'git', url, directory: `packages/${name}` }, homepage, bugs };
    writeFileSync(file, `${JSON.stringify({ ...read(file), ...links }, undefined, 2)}\n`);
  }
}

/** @param {string} file */
function read(file) {
  return JSON.parse(readFileSync(file, 'utf8'));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    writeLinks(join(fileURLToPath(import.meta.url), '../../..'));
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}
