import { checkModel, missingForModel } from './check-model.ts';
import { modelLines } from './search.ts';

const args = process.argv.slice(2);
const unknown = args.filter((argument) => argument !== '--full' && argument !== '--write');
if (unknown.length > 0) {
  console.error(`unknown: ${unknown.join(' ')}; npm run model [-- --full] [-- --write]`);
  process.exitCode = 2;
} else {
  const missing = await missingForModel();
  if (missing === undefined) process.exitCode = await run();
  else {
    console.error(`${missing}\nThe model was not checked.`);
    process.exitCode = 1;
  }
}

async function run(): Promise<number> {
  console.log(`model/lock.pml, ${modelLines()} lines`);
  const start = performance.now();
  const options = { full: args.includes('--full'), writeTraces: args.includes('--write') };
  const checks = await checkModel(options, ({ name, figure, problem }) => {
    console.log(`${problem === undefined ? 'ok    ' : 'failed'} ${name} (${figure})`);
    if (problem !== undefined) console.log(problem);
  });
  const failed = checks.filter(({ problem }) => problem !== undefined).length;
  const seconds = (performance.now() - start) / 1_000;
  console.log(`${checks.length - failed} passed, ${failed} failed, ${seconds.toFixed(0)} s`);
  return failed > 0 ? 1 : 0;
}
