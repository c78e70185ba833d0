import { fileURLToPath } from 'node:url'
import { playRound } from './round.ts'
const dist = process.argv[3] !== 'src'
const at = (name: string) => fileURLToPath(new URL(`../../${name}`, import.meta.url))
const build = dist ? { main: at('dist/main.js'), library: at('dist/index.js') } : { main: at('src/main.ts'), library: at('src/index.ts') }
const t = performance.now()
const o = await playRound({ seed: Number(process.argv[2]), build, mount: true, kills: Number(process.argv[4] ?? 8), ms: 20_000, longest: 1500, early: 0.3 })
console.log(Math.round(performance.now() - t), o.folder, o.faults.slice(0, 15))
console.log(Object.fromEntries(o.tally.of('')))
