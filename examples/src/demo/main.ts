/**
 * Three acts. Without an option: several workers sell the same stock at once, each reading it, thinking, and writing it back,
 * first without a lock, then with one. `--once`: a nightly job on machines whose clocks differ. `--leader`: the leader of
 * several processes resigns, and is killed.
 * `npm run demo` runs them on the workspace's Node 24, which `await using` needs.
 */
import { openStore, type Store } from './backends.ts';
import { playLeader } from './leader/play-leader.ts';
import { playOnce } from './once/play-once.ts';
import { playStock } from './play-stock.ts';
import { readSettings, type Settings, usage } from './settings.ts';

async function main(): Promise<number> {
  const settings = readSettings(process.argv.slice(2));
  if (typeof settings === 'string') {
    console.error(`${settings}\n\n${usage}`);
    return 2;
  }
  await using store = await openStore(settings.backend);
  return (await play(store, settings)) ? 0 : 1;
}

/** Gives whether the act showed what it is meant to show. */
function play(store: Store, settings: Settings): Promise<boolean> {
  switch (settings.act) {
    case 'stock':
      return playStock(store, settings);
    case 'once':
      return playOnce(store, settings);
    case 'leader':
      return playLeader(store, settings);
  }
}

process.exitCode = await main();
