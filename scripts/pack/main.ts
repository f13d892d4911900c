// `npm run pack -- redis-ioredis once`: these packages and those that they need as tarballs, into the folder `packed/` of the
// checkout, for an application that wants them before they are on npm. Without a name: every published package.
// `--to FOLDER` writes them elsewhere.
import { mkdirSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { packInto } from '../checks/packed.ts';
import { publishedPackages, requiredPeers } from '../checks/workspace.ts';
import { root } from '../launcher/root.mjs';
import { pointAtTarballs } from './point-at-tarballs.ts';

const { values, positionals: names } = parseArgs({
  options: { to: { type: 'string', default: join(root, 'packed') } },
  allowPositionals: true,
});
const folder = resolve(values.to);
mkdirSync(folder, { recursive: true });
// The tarballs of an earlier call would be installed with these.
for (const { shortName } of publishedPackages) rmSync(join(folder, `${shortName}.tgz`), { force: true });

const needed = new Set(names.length === 0 ? publishedPackages.map(({ shortName }) => shortName) : names);
// A set also goes through what is added meanwhile.
for (const name of needed) {
  const { dependencies = {} } = publishedPackages.find((one) => one.shortName === name)?.manifest ?? {};
  for (const one of publishedPackages) if (one.manifest.name in dependencies) needed.add(one.shortName);
}
const packed = await packInto(
  folder,
  publishedPackages.filter(({ shortName }) => needed.has(shortName)),
);
await pointAtTarballs(packed);
const clients = new Set(packed.flatMap(requiredPeers).map(([name]) => name));
const tarballs = packed.map(({ tarball }) => (/[^\w./:\\-]/.test(tarball) ? `"${tarball}"` : tarball));
console.log(`packed into ${folder}: ${packed.map(({ shortName }) => shortName).join(', ')}`);
console.log(`In your project:\n\n  ${['npm i', ...tarballs, ...clients].join(' ')}\n`);
