import re, sys, os
src, out = sys.argv[1], sys.argv[2]
os.makedirs(out, exist_ok=True)
def launches(s):
    while True:
        i = s.find('<<<')
        if i < 0: return s
        # kernel name with template args before
        j = i
        if s[:j].rstrip().endswith('>'):
            j = len(s[:j].rstrip()); depth = 0
            while True:
                j -= 1
                if s[j] == '>': depth += 1
                if s[j] == '<':
                    depth -= 1
                    if depth == 0: break
        k = len(s[:j].rstrip())
        m = re.search(r'[A-Za-z_]\w*$', s[:k]); start = m.start()
        name = s[start:i].strip()
        e = s.index('>>>', i)
        # '>>>' may be preceded by -> ... ok
        cfg = s[i+3:e]
        p = s.index('(', e); depth = 0; q = p
        while True:
            if s[q] == '(': depth += 1
            if s[q] == ')':
                depth -= 1
                if depth == 0: break
            q += 1
        args = s[p:q+1]
        s = s[:start] + f'emu::run(emu::config({cfg}), [&]() {{ {name}{args}; }})' + s[q+1:]
ASM = [
 ('sqrt.approx.ftz.f32', 'y = x >= 1.17549435e-38f ? sqrtf(x) : 0;'),
 ('rcp.approx.ftz.f32', 'inverse = 1 / den;'),
 ('bar.sync', 'emu::named(group + 1, SWEEP_LANES);'),
 ('ld.acquire', 'n = __atomic_load_n(arrived, __ATOMIC_ACQUIRE); if ((int)(n - target) < 0) emu::yield();'),
 ('mbarrier.init', 'emu::barrier_init(b, arrivals);'),
 ('fence.mbarrier', ';'),
 ('fence.proxy', ';'),
 ('mbarrier.arrive.expect_tx', 'emu::barrier_expect(b, bytes);'),
 ('mbarrier.arrive.shared', 'emu::barrier_arrive(b);'),
 ('mbarrier.try_wait', 'emu::barrier_wait(b, parity); done = 1;'),
 ('cp.async.bulk.tensor.3d.shared', 'emu::box_copy(map, x, y, z, to, b);'),
 ('cp.async.bulk.tensor.3d.global', 'emu::box_store(map, x, y, z, from);'),
 ('cp.async.bulk.commit_group', ';'),
 ('cp.async.bulk.wait_group', ';'),
]
def asms(s):
    pos = 0
    while True:
        m = re.compile(r'\basm( volatile)?\(').search(s, pos)
        if not m: return s
        p = m.end()-1; depth = 0; q = p; instr = False
        while True:
            ch = s[q]
            if instr:
                if ch == '\\': q += 1
                elif ch == '"': instr = False
            elif ch == '"': instr = True
            elif ch == '(': depth += 1
            elif ch == ')':
                depth -= 1
                if depth == 0: break
            q += 1
        body = s[p:q+1]; end = s.index(';', q)
        for key, rep in ASM:
            if key in body: break
        else: raise SystemExit(f'{src}: unknown asm {body}')
        s = s[:m.start()] + rep + s[end+1:]; pos = m.start() + len(rep)
for f in sorted(os.listdir(src)):
    if not f.endswith(('.cu', '.cuh')): continue
    s = open(f'{src}/{f}').read()
    s = re.sub(r'extern __shared__\s+(?:__align__\([^)]*\)\s+)?([\w ]+?)\s+(\w+)\[\];', r'\1 *const \2 = (\1 *)emu::dynamic();', s)
    s = asms(s); s = launches(s)
    s = re.sub(r'cudaLaunchCooperativeKernel\(', 'EMU_COOP(', s)
    s = s.replace('__shared__ struct', '__shared__ struct')
    g = f.replace('.cu', '.cpp') if f.endswith('.cu') else f
    open(f'{out}/{g}', 'w').write(s)
