"""`pytorch_model.bin`: what PyTorch wrote, what it may hold, and that nothing in it is run.

Alone: python -m pytest tests/checkpoints/torch_file_test.py (seconds)
Files that are refused: tests/system/bad_older_weights_test.py.
"""

import base64
import pickle
import zlib

import ml_dtypes
import numpy as np
import pytest

from bert.checkpoints.bundle_files import CheckpointError
from bert.checkpoints.torch_file import open_weights
from tests.kit.older_weights import (
  FORMS,
  ORDERED,
  Call,
  Name,
  pickled,
  storage,
  tensor,
  torch_bytes,
  write_torch,
  zip_of,
)

# What torch.save of PyTorch 2.13 wrote of `WRITTEN`, deflated: as it does by itself, with another
# protocol of pickles, and in the form before 1.6.
BY_PYTORCH = {
  "zip": (
    "c-p0v&rj1}7{}kW`&niD5E!81&%;P?bfs*asF21~lbSeZObC~yY-MdMD{uD>qQ-"
    ">8K*CLp2T#Vti+_NLo(%tj2RwQ6Ks<T!tnb^7(w1yPc(Zp+w&(kOKJEKFPm3}g1|S{>hgKgL0E$)7^fh&=svsq^`q+"
    "@fBv|yV4eB`r>4gv$C@@q(CRSw1O{5zQrfjK8P2H%Lky>w<R(XwMAeBxp#Bgu}M=CWH(vF0Y3{yc5ogWz(whdVrS)l"
    "Q?vf6}EIf`KHfed6yrng{RrsdEUOl(&wreUZRq?`2ybKk0}mRh~7R}cf4i4r`8;OP?VvE2|%YB;+_Yhf*-"
    "*?zsmkCv$|*e8dGZU44LWCIAEDZxQorokac)&jk&7|Sl_upN?xDeOlfIAZf{!cjT23CA3-vk0Cm!Si-"
    "t9gh3F?wR$P>vh2n;owE=6+-"
    "Y5_L`V*JT4=6r39}wGetQT|1|V$r;bC(F19_r6zFkJFSBe~D+(&Fsa69&CrL~k9AcJOe*XRA1xZeJd&@D9Kd@|_Us*"
    "BqT75;WBT1YNl*W-"
    "(jwb+f>+lzaQ&1fN`oWwFu=E6}COK|NoIOt7{blF~87g7ey!mr9inByJG9<w*Usp`Al6d_D0FLX%9R8ZeAG|m4em_r"
    "$QZM&jjo?2<x)4qJiL#QIJ~9!$ogI=Zx4ZiWCjj9tx#s=3I7z&5lE=RoYdI5!)$e;INgD6S&<kc=2DhT~$Ay??Nak<"
    "vYLB|t-#Fk78o<8&hHB}!1D+~m{*?8qBxe2-gcbM#F9-skFXU!eUdT_+uxx=Za5;|83LMX}0xM(-9HIR4VQ@W-"
    "Inp*|h`_p>-"
    "l@=ch&(vQgKF;pNcogsL!jLp37UADc+B6p6zDKHf<E3x?DzS+_V~C1ASm~CP0}YHra_>0gIaGF__ZH{+H6qktzN%&F"
    "dWcwL9Ms`dVSir9&MZF?k$UPpLiewx)f|tjz%Z<%bULDDieY09m=_WiR`y))b8BBt^Rf19FeG_N!amD>_2a*&}s"
  ),
  "protocol 4": (
    "c-p0vy>HV%7{<?b;-)R?mk=!-"
    "I=fOy6UR+bT1aJ(K{67dh^33=CT?uu#>Kf56$z;lN~KDc_~;?A@G&y7!N9=A%upsahKh+l0q&f{IlD^Ik5euuCHH&Z"
    "=X~$;x~Ot701^psY>a^kpt~j0+BW9PI@FU}4{b#r0c)YL8+$D=P2edKJVr;}1?XTbsnwxn*N``%xyE|kvdbDYsx`;e"
    "wncP+1i>4q;f;F5KwjJ@Fsay%4)3>qK0qFmLLOJzsw0($=$;BxR^|4P%BjpA+V_S_j%^zyXgO7!XZWsLHe928(<(vC"
    "&aNVeR&fZ3%$OjUaWi2KnnUeCoXX-r3<<Yyjs=^|_GaE2zOCCEw3al&INQ?Ez;GjkRw?w3Q?1abNKnQ{XJ<Q5Jy}!-"
    "5^rz3|6ah)kj!G&>zD+~!F41z9CuTP+P2}=@Zl9XAGwv2k2F#6`R}i1<Pyp3u3#GEItp5Mr|Gs;scsrosK}YKh{#Gr"
    "K;iMDKP*nc_7pG<3W0$29cVb@!WDVx%!kLrwji_(qM>o^_hlYu;d^Qr0oOyWm`^G4)pH1FM%^vouNC~ka~IDKD@4)c"
    "i=&rQ_>ZYRisr(K(uypcSP?$XH<BxRc!+QU5bKj`C7erC<mK}`{<VQtWTIi~=aEB_CVFZZ1xta3zyP_kipUI+%s<{$"
    "9`vuj86b8H;2*zcxE6N66P@%R%_=K$@{~eSd1+C~=kro-"
    "F}skG^0~}HDkVu$CY!@+TEuHQw<!8H{j}5gDqtOguaY5R1D$je89Syt+Q*|b-2f&-"
    "<Z}jeYdg^(w27y~#$`c|&Jm468*w}o=M@zvXaG^1cFjl#zr=xvccU!rf-"
    "w6r%BG_%UA<xUVl2XnQI@X1(GdHFV!J$dx-"
    "4cw@I)N+DcGXQ^K<R;=B@<fU}U|;HrFrlwq1GOx&K=JZN53;e3KdU_c!<c2e9t#Hv"
  ),
  "pickles": (
    "c-n1|%Wl&^6ox%xCxL;MaxLZBa*>ivl%%9hHqZsCkcL~$#v5e0&QKeTJURApC6Fp*(}?m6EV}Gt^mTXyBo-Xop-"
    "?F!&)7ab{{H`;negvI|NgQ4YxVQV`<3>Dzxip?dH`0_Te2)`oEkKt(f+<lv)ClSsKHyHFFHol%2&xK4iezsJV8bLGF"
    "E;Te^nXS2jDcl8Wpq1qzE<1J)7R*1feb+&nXxt*@K33^8BwRqiO&wM3aV5+s`r9nebD!o5y<Oqe?Q9`ujZryxH^`1)"
    "MsAJq334i`dpCzz<bXfa5Jv&+u7qb7RoyZ+3^nUI%KWk8qrmkNR7L#*VZkm-ZAcNL#WgTs#UXvQ{Bd;!M0tM=DjLmv"
    "M*!M9YOs2$x-0D9s`)M&u>3qq$mFqDo__(6A++!d1x%scT13fx3=x!-"
    "bnADuP=TY8K^Hpg)}@S^h^Sbg$p<u5Z9?qI06JlnD;uj%0^$w<6y|xbMP)lAOT9bL7{w?`P!IbL91Iw=)>P8j%^19}"
    "&6Ls)&yfp1AO|IIEAvS<NxT=CSy^jj>gmTeI=pI%TuR#_V3V{vVSUv~1Bub3*fY>kn+yt9A"
  ),
}
BASE = np.arange(6, dtype=np.float32).reshape(2, 3)
WRITTEN = {"a": BASE, "t": BASE.T, "h": np.array([1.5, -2], np.float16), "n": np.array(7)}


def read_all(path):
  file = open_weights(path)
  found = {name: file.read(name) for name in file.tensors}
  for name, values in found.items():
    info = file.tensors[name]
    assert (values.shape, values.dtype) == (info.shape, info.dtype)
    assert values.flags.c_contiguous
    assert values.flags.aligned
  return found


def assert_same(found, expected):
  assert list(found) == list(expected)
  for name, values in expected.items():
    assert found[name].dtype == values.dtype, name
    assert found[name].tobytes() == values.tobytes(), name


@pytest.mark.parametrize("form", BY_PYTORCH)
def test_a_file_of_pytorch(tmp_path, form):
  content = zlib.decompress(base64.b85decode(BY_PYTORCH[form]))
  (tmp_path / "a.bin").write_bytes(content)
  assert_same(read_all(tmp_path / "a.bin"), WRITTEN)


@pytest.mark.parametrize("form", FORMS)
def test_types_and_strides(tmp_path, form):
  names = ("float16", "float32", "float64", "bool", "uint8", "int8", "int16", "int32", "int64")
  tensors = {name: np.arange(5).astype(name) for name in names}
  tensors["bfloat16"] = np.arange(5).astype(ml_dtypes.bfloat16)
  base = np.arange(48, dtype=np.float32).reshape(2, 4, 6)
  tensors |= {"base": base, "tied": base, "turned": base.T, "part": base[1, 1::2, 2:4]}
  tensors |= {"scalar": base[0, 0, 3], "none": np.zeros((0, 3), np.float32)}
  tensors["scalar"] = np.asarray(base[0, 0, 3:4]).reshape(())
  write_torch(tmp_path / "a.bin", tensors, form)
  assert_same(read_all(tmp_path / "a.bin"), tensors)


def test_parameters_and_older_names(tmp_path):
  """A parameter; the function before PyTorch 0.4; a dictionary as Python 2 pickles it."""
  of = storage("FloatStorage", "0", 6)
  old = Call(Name("torch._utils", "_rebuild_tensor"), (of, 0, (2, 3), (3, 1)))
  parameter = Call(
    Name("torch._utils", "_rebuild_parameter"), (tensor(of, (2, 3), (3, 1)), True, ORDERED)
  )
  pairs = Call(Name("collections", "OrderedDict"), ([["old", old], ["parameter", parameter]],))
  (tmp_path / "a.pt").write_bytes(zip_of(pickled(pairs), {"0": BASE}))
  assert_same(read_all(tmp_path / "a.pt"), {"old": BASE, "parameter": BASE})


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_protocols(tmp_path, protocol):
  """Python's own pickles of what is no tensor, each with other opcodes, are read to their end."""
  value = {"é" * 300: [(), (1,), (1, 2), (1, 2, 3, -5, 2**40), {"f": 1.5, "t": [True, None]}]}
  content = pickle.dumps({"a": value, "b": value}, protocol)
  (tmp_path / "a.bin").write_bytes(zip_of(content, {}))
  with pytest.raises(CheckpointError, match="'a' is no tensor: give a file of what model"):
    open_weights(tmp_path / "a.bin")


def test_a_file_that_shrinks_between_opening_and_reading(tmp_path):
  write_torch(tmp_path / "a.bin", {"a": BASE}, "pickles")
  file = open_weights(tmp_path / "a.bin")
  (tmp_path / "a.bin").write_bytes((tmp_path / "a.bin").read_bytes()[:-1])
  with pytest.raises(CheckpointError, match="became shorter while it was read"):
    file.read("a")
  with pytest.raises(CheckpointError, match="has no tensor 'b'"):
    file.read("b")


@pytest.mark.parametrize("form", FORMS)
def test_cut_off_anywhere(tmp_path, form):
  content, path = torch_bytes({"a": BASE}, form), tmp_path / "a.bin"
  for length in range(len(content)):
    path.write_bytes(content[:length])
    with pytest.raises(CheckpointError, match=str(path)):
      open_weights(path)
