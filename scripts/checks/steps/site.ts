import { join } from 'node:path';
import { root } from '../../launcher/root.mjs';
import { runCommand } from '../command.ts';
import type { Step } from '../step.ts';
import { resultOf } from '../step.ts';

/** What `npm run site` does; it needs npm packages only. */
export const siteStep: Step = {
  name: 'site',
  about: 'the website is built, and none of its links or anchors leads nowhere',
  kind: 'static',
  async run() {
    const { ok, output, stdout } = await runCommand(process.execPath, [join(root, 'site/src/main.ts')]);
    const built = stdout.trim().split('\n').at(-1) ?? '';
    return resultOf([{ name: 'npm run site', problem: ok ? undefined : output }], ok ? [built] : []);
  },
};
