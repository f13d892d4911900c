import { expect, test } from 'vitest';
import { ownFolderOf } from '../../src/lint/place.ts';

test.each([
  [
    '    at file:///app/node_modules/@locks/core/dist/lint/index.js:12:3',
    '/app/node_modules/@locks/core/dist/',
  ],
  [
    '    at Object.<anonymous> (/app/node_modules/.pnpm/@locks+core@1.0.0/node_modules/@locks/core/dist/lint/index.cjs:9:1)',
    '/app/node_modules/.pnpm/@locks+core@1.0.0/node_modules/@locks/core/dist/',
  ],
  [
    String.raw`    at Object.<anonymous> (C:\app\node_modules\@locks\core\dist\lint\index.cjs:9:1)`,
    String.raw`C:\app\node_modules\@locks\core\dist` + '\\',
  ],
  ['    at /repository/packages/core/src/lint/place.ts:4:21', '/repository/packages/core/src/'],
])('the folder of core is told by a frame of one of its modules: %s', (frame, folder) => {
  expect(ownFolderOf(frame)).toBe(folder);
});

test.each([
  '    at file:///app/dist/server.js:12:3',
  '    at Object.<anonymous> (/app/src/main.cjs:9:1)',
  String.raw`    at Object.<anonymous> (C:\app\dist\server.cjs:9:1)`,
  '    at file:///app/node_modules/@acme/core/dist/index.js:1:1',
  '',
])('a bundle has no folder of core, whose frames would hide those of the application: %s', (frame) => {
  expect(ownFolderOf(frame)).toBeUndefined();
});
