import { buildOnce } from './build.ts'

/** Runs once before all test files. */
export default buildOnce
