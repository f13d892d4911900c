// `npm run pack -- redis-ioredis once`: these packages and those that they need as tarballs, into the folder `packed/` of the
// checkout, for an application that wants them before they are on npm. Without a name: every published package.
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { packInto } from '../checks/packed.ts';
import { publishedPackages } from '../checks/workspace.ts';
import { root } from '../launcher/root.mjs';
import { installLine, withDependencies } from './selection.ts';

const names = process.argv.slice(2);
const folder = join(root, 'packed');
const selected = names.length === 0 ? publishedPackages : withDependencies(names);
// What an earlier call packed would be installed with the rest.
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder);
const packed = await packInto(folder, selected);
console.log(`packed into ${folder}: ${packed.map(({ shortName }) => shortName).join(', ')}`);
console.log(`In your project:\n\n  ${installLine(packed)}\n`);
