// Runs the code of the root's README, on Redis, each block as it is written. Prints what the blocks printed, with N for each number.
import process from 'node:process';
import { blocks } from './blocks';

async function main() {
  const printed: string[] = [];
  const { log } = console;
  console.log = (text: unknown) => printed.push(String(text).replaceAll(/\b(process|token) \d+/g, '$1 N'));
  for (const block of blocks) await block();
  console.log = log;
  console.log(JSON.stringify({ printed }));
  // The clients of the README's code belong to it.
  process.exit(0);
}

void main();
