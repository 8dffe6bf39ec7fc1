import { counter } from './counter';
export const also = () => counter.n;
