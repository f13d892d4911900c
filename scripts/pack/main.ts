// `npm run pack -- redis-ioredis once`: these packages and those that they need as tarballs, into the folder `packed/` of the
// checkout, for an application that wants them before they are on npm. Without a name: every published package.
// `--to FOLDER` writes them elsewhere.
import { mkdirSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { packInto } from '../checks/packed.ts';
import { publishedPackages } from '../checks/workspace.ts';
import { root } from '../launcher/root.mjs';
import { installLine, withDependencies } from './selection.ts';

const { values, positionals: names } = parseArgs({
  options: { to: { type: 'string', default: join(root, 'packed') } },
  allowPositionals: true,
});
const folder = resolve(values.to);
const selected = names.length === 0 ? publishedPackages : withDependencies(names);
mkdirSync(folder, { recursive: true });
// The tarballs of an earlier call would be installed with these.
for (const { shortName } of publishedPackages) rmSync(join(folder, `${shortName}.tgz`), { force: true });
const packed = await packInto(folder, selected);
console.log(`packed into ${folder}: ${packed.map(({ shortName }) => shortName).join(', ')}`);
console.log(`In your project:\n\n  ${installLine(packed)}\n`);
